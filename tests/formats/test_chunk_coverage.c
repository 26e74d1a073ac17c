// SPDX-License-Identifier: Apache-2.0
/* Whether boxes make up a tensor, against marking each element. */
#include "boxes.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MAX_BOXES = 6, MAX_RANK = 3 };

struct box {
    uint64_t start[MAX_RANK], size[MAX_RANK];
};

static enum phema_status check(const struct box *boxes, size_t n, unsigned rank, uint64_t n_elems,
                               struct phema_error *err)
{
    struct phema_chunk parts[MAX_BOXES];
    memset(parts, 0, sizeof(parts));
    for (size_t i = 0; i < n; i++) {
        parts[i].start = boxes[i].start;
        parts[i].size = boxes[i].size;
    }
    return chunks_check(parts, n, rank, n_elems, err);
}

/* What lies between two boxes in the order of the sweep hides neither of them. What they leave out
 * is as much as they share, so that the number of elements tells nothing. */
static void boxes_that_overlap_need_not_be_neighbours(void **state)
{
    (void)state;
    /*  A .      A begins first, then B beside it, then C inside A
     *  A B
     *  AC B
     *  AC .  */
    static const struct box boxes[] = {{{0, 0}, {4, 1}}, {{1, 1}, {2, 1}}, {{2, 0}, {2, 1}}};
    struct phema_error err = {""};
    assert_fails(check(boxes, 3, 2, 8, &err), PHEMA_ERR_FILE, &err,
                 "the pieces at [0, 0] and [2, 0] overlap");
    /* the same with a long row of boxes between */
    static const struct box row[] = {
        {{0, 0}, {6, 1}}, {{1, 1}, {1, 1}}, {{2, 1}, {1, 1}}, {{3, 1}, {1, 1}}, {{4, 0}, {2, 1}}};
    assert_fails(check(row, 5, 2, 12, &err), PHEMA_ERR_FILE, &err,
                 "the pieces at [0, 0] and [4, 0] overlap");
}

/* How many elements are in no box, or in several. */
static size_t count_wrong(const struct box *boxes, size_t n, const uint64_t *shape)
{
    size_t n_wrong = 0;
    for (uint64_t i = 0; i < shape[0]; i++)
        for (uint64_t j = 0; j < shape[1]; j++)
            for (uint64_t k = 0; k < shape[2]; k++) {
                const uint64_t at[] = {i, j, k};
                size_t n_here = 0;
                for (size_t b = 0; b < n; b++) {
                    bool is_inside = true;
                    for (unsigned d = 0; d < MAX_RANK; d++)
                        is_inside = is_inside && at[d] - boxes[b].start[d] < boxes[b].size[d];
                    n_here += is_inside;
                }
                n_wrong += n_here != 1;
            }
    return n_wrong;
}

static uint64_t below(uint64_t n)
{
    static uint64_t random = 1;
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
}

/* A tensor cut in two again and again, and then mostly one box moved or made another size. */
static size_t make(struct box *boxes, const uint64_t *shape)
{
    size_t n = 1;
    boxes[0] = (struct box){{0, 0, 0}, {shape[0], shape[1], shape[2]}};
    for (size_t wanted = 1 + below(MAX_BOXES); n < wanted; n++) {
        struct box *box = &boxes[below(n)];
        unsigned d = (unsigned)below(MAX_RANK);
        uint64_t cut = below(box->size[d] + 1);
        boxes[n] = *box;
        boxes[n].start[d] += cut;
        boxes[n].size[d] -= cut;
        box->size[d] = cut;
    }
    for (uint64_t changes = below(4); changes > 0; changes--) {
        struct box *box = &boxes[below(n)];
        unsigned d = (unsigned)below(MAX_RANK);
        box->size[d] = below(shape[d] + 1);
        box->start[d] = below(shape[d] - box->size[d] + 1);
    }
    return n;
}

static void boxes_are_accepted_where_each_element_is_in_one(void **state)
{
    (void)state;
    size_t n_good = 0, n_bad = 0;
    for (int round = 0; round < 20000; round++) {
        const uint64_t shape[] = {1 + below(4), 1 + below(4), 1 + below(4)};
        struct box boxes[MAX_BOXES];
        size_t n = make(boxes, shape);
        bool is_good = count_wrong(boxes, n, shape) == 0;
        struct phema_error err = {""};
        enum phema_status status = check(boxes, n, MAX_RANK, shape[0] * shape[1] * shape[2], &err);
        assert_int_equal(status, is_good ? PHEMA_OK : PHEMA_ERR_FILE);
        n_good += is_good;
        n_bad += !is_good;
    }
    assert_true(n_good > 1000 && n_bad > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_that_overlap_need_not_be_neighbours),
        cmocka_unit_test(boxes_are_accepted_where_each_element_is_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
