/* sort.h - sorting of numbers, and of arrays that are mostly in order, such as items of files. */
#ifndef PHEMA_SORT_H
#define PHEMA_SORT_H

#include <stddef.h>
#include <stdlib.h>

typedef int phema_comparison(const void *a, const void *b, void *context);

/* As qsort_r, with one comparison per item where the array is in order. */
static inline void phema_sort(void *items, size_t n, size_t size, phema_comparison *compare,
                              void *context)
{
    const char *at = items;
    size_t n_sorted = n < 1 ? 0 : 1;
    while (n_sorted < n && compare(at + (n_sorted - 1) * size, at + n_sorted * size, context) <= 0)
        n_sorted++;
    if (n_sorted < n)
        qsort_r(items, n, size, compare, context);
}

/* For qsort, of doubles without NaN. */
static inline int phema_compare_doubles(const void *a, const void *b)
{
    const double *first = (const double *)a, *second = (const double *)b;
    return (*first > *second) - (*first < *second);
}

/* Sorts the values, none of which is NaN, and keeps each once. Returns how many are left. */
static inline size_t phema_sort_distinct(double *values, size_t n)
{
    size_t n_kept = 0;
    qsort(values, n, sizeof(*values), phema_compare_doubles);
    for (size_t i = 0; i < n; i++)
        if (n_kept == 0 || values[i] != values[n_kept - 1])
            values[n_kept++] = values[i];
    return n_kept;
}

#endif
