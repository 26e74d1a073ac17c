// SPDX-License-Identifier: Apache-2.0
/* Sorted, nearly sorted and unsorted arrays, and the number of accesses to items. */
#include "phema/sort.h"

#include <string.h>

#include "support.h"

static int compare(const void *a, const void *b, void *n_looks)
{
    int left = *(const int *)a, right = *(const int *)b;
    ++*(size_t *)n_looks;
    return (left > right) - (left < right);
}

static void items_are_sorted(void **state)
{
    (void)state;
    static const int orders[][4] = {{1, 2, 3, 4}, {1, 2, 4, 3}, {2, 1, 3, 4},
                                    {4, 3, 2, 1}, {3, 3, 1, 3}, {1, 3, 2, 4}};
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        for (size_t n = 0; n <= 4; n++) {
            int items[4];
            size_t n_looks = 0;
            memcpy(items, orders[i], sizeof(items));
            phema_sort(items, n, sizeof(*items), compare, &n_looks);
            for (size_t k = 1; k < n; k++)
                assert_true(items[k - 1] <= items[k]);
            for (size_t k = n; k < 4; k++) /* beyond the array */
                assert_int_equal(items[k], orders[i][k]);
        }
    }
}

static void sorted_items_are_compared_once(void **state)
{
    (void)state;
    int items[1000];
    size_t n_looks = 0;
    for (int i = 0; i < 1000; i++)
        items[i] = i / 2;
    phema_sort(items, 1000, sizeof(*items), compare, &n_looks);
    assert_int_equal(n_looks, 999);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(items_are_sorted),
    cmocka_unit_test(sorted_items_are_compared_once),
};
TEST_GROUP(tests)
