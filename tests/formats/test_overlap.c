// SPDX-License-Identifier: Apache-2.0
/* Shared bytes, compared with bytes counted one by one and with known cases. */
#include "phema/formats.h"

#include "build.h"

static uint64_t state_of_random = 1;

static uint64_t below(uint64_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (state_of_random >> 33) % n;
}

/* A tensor with space for its shape. */
struct view {
    struct phema_tensor tensor;
    uint64_t shape[4], stride[4];
};

static void finish_view(struct view *view)
{
    view->tensor.shape = view->shape;
    view->tensor.n_elems = 1;
    for (unsigned k = 0; k < view->tensor.rank; k++)
        view->tensor.n_elems *= view->shape[k];
    view->tensor.size_bytes = view->tensor.n_elems * phema_dtype_bits(view->tensor.dtype) / 8;
}

/* Offset and strides in elements of F32. */
static struct view *matrix(uint64_t offset, uint64_t rows, uint64_t columns, uint64_t row_step,
                           uint64_t column_step)
{
    struct view *view = calloc(1, sizeof(*view));
    assert_non_null(view);
    view->tensor = (struct phema_tensor){
        .dtype = PHEMA_F32, .rank = 2, .offset = 100 + 4 * offset, .stride = view->stride};
    view->shape[0] = rows;
    view->shape[1] = columns;
    view->stride[0] = row_step;
    view->stride[1] = column_step;
    finish_view(view);
    return view;
}

static void random_view(struct view *view)
{
    static const enum phema_dtype dtypes[] = {PHEMA_U8, PHEMA_F16, PHEMA_F32};
    view->tensor = (struct phema_tensor){.dtype = dtypes[below(3)],
                                         .rank = (unsigned)below(4),
                                         .offset = below(60),
                                         .file = below(16) == 0};
    bool is_strided = view->tensor.rank && below(8);
    for (unsigned k = 0; k < view->tensor.rank; k++) {
        view->shape[k] = below(40) ? 1 + below(5) : 0;
        view->stride[k] = below(3) ? below(8) : 4 * below(6);
    }
    view->tensor.stride = is_strided ? view->stride : NULL;
    finish_view(view);
    if (!view->tensor.n_elems)
        view->tensor.stride = NULL; /* as in a listing */
}

static void count_bytes(uint8_t *counts, size_t size, const struct phema_tensor *tensor)
{
    size_t n_bytes = phema_dtype_bits(tensor->dtype) / 8;
    for (uint64_t i = 0; i < tensor->n_elems; i++) {
        uint64_t place = tensor->stride ? 0 : i;
        uint64_t rest = i;
        for (unsigned k = tensor->rank; tensor->stride && k-- > 0; rest /= tensor->shape[k])
            place += rest % tensor->shape[k] * tensor->stride[k];
        assert_true(tensor->offset + (place + 1) * n_bytes <= size);
        memset(counts + tensor->offset + place * n_bytes, 1, n_bytes);
    }
}

static bool overlap_by_definition(const struct phema_tensor *a, const struct phema_tensor *b)
{
    uint8_t of_a[2048] = {0};
    uint8_t of_b[2048] = {0};
    count_bytes(of_a, sizeof(of_a), a);
    count_bytes(of_b, sizeof(of_b), b);
    for (size_t i = 0; i < sizeof(of_a); i++)
        if (a->file == b->file && of_a[i] && of_b[i])
            return true;
    return false;
}

static bool overlap(const struct phema_tensor *a, const struct phema_tensor *b)
{
    const struct phema_tensor tensors[] = {*a, *b};
    bool answers[2] = {false, false};
    for (size_t i = 0; i < 2; i++) { /* either of the two is replaced */
        struct phema_error err = {0};
        size_t pair[2] = {0, 0};
        const bool is_replaced[] = {i == 0, i == 1};
        assert_ok(phema_find_overlap(pair, &answers[i], PHEMA_OVERLAP_KEPT, tensors, is_replaced, 2,
                                     &err),
                  &err);
    }
    assert_int_equal(answers[0], answers[1]);
    return answers[0];
}

static void random_views_follow_the_definition(void **state)
{
    (void)state;
    size_t n_shared = 0;
    for (int round = 0; round < 20000; round++) {
        struct view a = {0};
        struct view b = {0};
        random_view(&a);
        random_view(&b);
        bool expected = overlap_by_definition(&a.tensor, &b.tensor);
        assert_int_equal(overlap(&a.tensor, &b.tensor), expected);
        n_shared += expected;
    }
    assert_in_range(n_shared, 4000, 16000); /* both results occur */
}

/* Too large for marking every byte, so the result must come from the strides. */
static void large_interleaved_views_are_distinguished(void **state)
{
    (void)state;
    const uint64_t n = (uint64_t)1 << 20;
    struct view *even = matrix(0, n, 513, 1026, 2);        /* base[:, 0::2] of 1026 columns */
    struct view *odd = matrix(1, n, 513, 1026, 2);         /* base[:, 1::2] */
    struct view *left = matrix(0, n, 500, 1026, 1);        /* base[:, :500] */
    struct view *right = matrix(500, n, 526, 1026, 1);     /* base[:, 500:] */
    struct view *more = matrix(499, n, 527, 1026, 1);      /* base[:, 499:] */
    struct view *turned = matrix(500, 526, n, 1, 1026);    /* base[:, 500:].T */
    struct view *expanded = matrix(500, n << 20, 2, 0, 1); /* base[0, 500:502] */
    assert_false(overlap(&left->tensor, &right->tensor));
    assert_false(overlap(&left->tensor, &turned->tensor));
    assert_false(overlap(&left->tensor, &expanded->tensor));
    assert_true(overlap(&left->tensor, &more->tensor));
    assert_true(overlap(&right->tensor, &turned->tensor));
    assert_true(overlap(&right->tensor, &expanded->tensor));
    assert_true(overlap(&even->tensor, &left->tensor));
    assert_false(overlap(&even->tensor, &odd->tensor));
    struct view *views[] = {even, odd, left, right, more, turned, expanded};
    for (size_t i = 0; i < ARRAY_LEN(views); i++)
        free(views[i]);
}

static bool find(size_t pair[2], enum phema_overlap sought, const struct phema_tensor *tensors,
                 const bool *is_replaced, size_t n)
{
    struct phema_error err = {0};
    bool found = true;
    assert_ok(phema_find_overlap(pair, &found, sought, tensors, is_replaced, n, &err), &err);
    return found;
}

static bool are_same(const struct phema_tensor *a, const struct phema_tensor *b)
{
    bool is_same = a->file == b->file && a->offset == b->offset && a->dtype == b->dtype &&
                   a->n_elems == b->n_elems && !a->stride == !b->stride;
    if (!is_same || !a->stride)
        return is_same;
    is_same = a->rank == b->rank;
    for (unsigned k = 0; k < a->rank && is_same; k++)
        is_same = a->shape[k] == b->shape[k] && (a->shape[k] == 1 || a->stride[k] == b->stride[k]);
    return is_same;
}

static bool is_sought(enum phema_overlap sought, const struct phema_tensor *tensors,
                      const bool *is_replaced, size_t a, size_t b)
{
    if (a == b || !is_replaced[a] || is_replaced[b] != (sought == PHEMA_OVERLAP_REPLACED))
        return false;
    return overlap_by_definition(&tensors[a], &tensors[b]) &&
           (sought == PHEMA_OVERLAP_KEPT || !are_same(&tensors[a], &tensors[b]));
}

static void exactly_the_overlaps_are_found(void **state)
{
    (void)state;
    enum { N = 7 };
    size_t n_found[2] = {0, 0};
    for (int round = 0; round < 6000; round++) {
        struct view views[N] = {0};
        struct phema_tensor tensors[N];
        bool is_replaced[N];
        for (size_t i = 0; i < N; i++) {
            random_view(&views[i]);
            tensors[i] = views[i].tensor;
            tensors[i].offset += 150 * below(4);
            if (i && below(3) == 0)
                tensors[i] = tensors[below(i)]; /* a second name */
            is_replaced[i] = below(2);
        }
        for (enum phema_overlap sought = 0; sought < 2; sought++) {
            size_t pair[2] = {99, 99};
            bool expected = false;
            for (size_t a = 0; a < N; a++)
                for (size_t b = 0; b < N; b++)
                    expected |= is_sought(sought, tensors, is_replaced, a, b);
            bool found = find(pair, sought, tensors, is_replaced, N);
            assert_int_equal(found, expected);
            if (found)
                assert_true(is_sought(sought, tensors, is_replaced, pair[0], pair[1]));
            n_found[sought] += found;
        }
    }
    assert_in_range(n_found[0], 1000, 5900);
    assert_in_range(n_found[1], 1000, 5900);
}

/* Many tensors in sequence, and many names of one tensor: neither takes quadratic time. */
static void many_tensors_are_gone_through_quickly(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct phema_tensor *tensors = calloc(N, sizeof(*tensors));
    bool *is_replaced = calloc(N, sizeof(*is_replaced));
    assert_non_null(tensors);
    assert_non_null(is_replaced);
    static const uint64_t shape[] = {10};
    size_t pair[2];
    for (int is_tied = 0; is_tied < 2; is_tied++) {
        for (size_t i = 0; i < N; i++) {
            tensors[i] =
                (struct phema_tensor){.rank = 1, .shape = shape, .n_elems = 10, .size_bytes = 10};
            tensors[i].offset = is_tied ? 0 : 10 * (uint64_t)(N - i);
            is_replaced[i] = is_tied || i % 2;
        }
        assert_false(find(pair, PHEMA_OVERLAP_KEPT, tensors, is_replaced, N));
        assert_false(find(pair, PHEMA_OVERLAP_REPLACED, tensors, is_replaced, N));
    }
    is_replaced[7] = false; /* one of the tied names */
    assert_true(find(pair, PHEMA_OVERLAP_KEPT, tensors, is_replaced, N));
    assert_int_equal(pair[1], 7);
    free(tensors);
    free(is_replaced);
}

/* Replaced and kept columns alternate, in too many pairs to compare. The result arrives in time and
 * is the cautious one. */
static void hostile_numbers_of_views_end(void **state)
{
    (void)state;
    enum { N = 60000 };
    struct phema_tensor *tensors = calloc(N, sizeof(*tensors));
    bool *is_replaced = calloc(N, sizeof(*is_replaced));
    assert_non_null(tensors);
    assert_non_null(is_replaced);
    static const uint64_t shape[] = {1000};
    static const uint64_t stride[] = {N};
    for (size_t i = 0; i < N; i++) {
        tensors[i] = (struct phema_tensor){.rank = 1,
                                           .shape = shape,
                                           .stride = stride,
                                           .n_elems = 1000,
                                           .size_bytes = 1000,
                                           .offset = i};
        is_replaced[i] = i % 2;
    }
    size_t pair[2];
    assert_false(find(pair, PHEMA_OVERLAP_KEPT, tensors, is_replaced, 1000));
    assert_true(find(pair, PHEMA_OVERLAP_KEPT, tensors, is_replaced, N));
    free(tensors);
    free(is_replaced);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_views_follow_the_definition),
    cmocka_unit_test(large_interleaved_views_are_distinguished),
    cmocka_unit_test(exactly_the_overlaps_are_found),
    cmocka_unit_test(many_tensors_are_gone_through_quickly),
    cmocka_unit_test(hostile_numbers_of_views_end),
};
TEST_GROUP(tests)
