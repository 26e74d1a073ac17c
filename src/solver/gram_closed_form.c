// SPDX-License-Identifier: Apache-2.0
/* gram_closed_form.c - inner products of power functions in closed form (arXiv:2312.02696, appendix
 * C.3, for the white metric). */
#include "gram_closed_form.h"

#include "phema/arena.h"

void phema_product_add(struct phema_products *products, const struct phema_profile_set *set,
                       size_t i, size_t j, const phema_quad *product)
{
    size_t n = set->n, stride = products->stride;
    size_t first = set->owners[i] < set->owners[j] ? set->owners[i] : set->owners[j];
    size_t last = set->owners[i] < set->owners[j] ? set->owners[j] : set->owners[i];
    bool is_plain = last < n; /* the factors are 1 */
    phema_quad factor = is_plain ? 1 : set->factors[i] * set->factors[j];
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        if (is_plain)
            products->with[g][first * stride + last] += product[g];
        if (first == last)
            products->self[g][last] += (i == j ? 1 : 2) * factor * product[g];
        if (first < n && !is_plain)
            products->with[g][last * stride + first] += factor * product[g];
    }
}

bool phema_product_is_wanted(const struct phema_products *products,
                             const struct phema_profile_set *set, size_t i, size_t j)
{
    if ((i < j ? j - i : i - j) >= products->reach)
        return false;
    return i < set->n || j < set->n || set->owners[i] == set->owners[j];
}

/* ---- Lines ---- */

/* Powers outside the range of a quad are computed for each pair instead. */
void phema_line_scale(struct phema_line *line, const struct phema_products *products,
                      const struct phema_profile_set *set, const struct phema_member *a,
                      size_t family)
{
    struct phema_scaled kept;
    line->is_scaled = phema_profile_set_divides(set, family, a->time) &&
                      phema_scaled_from_quad(&kept, &set->kept[family * set->n_times + a->time]);
    for (size_t g = 0; line->is_scaled && g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        line->is_scaled = phema_scaled_from_quad(&line->from[g], &line->begun[g]) &&
                          phema_scaled_from_quad(&line->loss[g], &line->lost[g]);
        line->loss[g] = phema_scaled_times(line->loss[g], kept);
    }
}

static void find_product(phema_quad *product, const struct phema_products *products,
                         const struct phema_profile_set *set, size_t i, size_t j,
                         const struct phema_line *line)
{
    const struct phema_member *a = &set->members[i], *b = &set->members[j];
    phema_quad decay = phema_profile_set_decay(set, b->family, a->time, b->time);
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            product[g] = line->begun[g] - decay * line->lost[g];
}

/* The same of two different snapshots, where the line is scaled. */
static void find_scaled(phema_quad *product, const struct phema_products *products,
                        const struct phema_profile_set *set, size_t j,
                        const struct phema_line *line)
{
    const struct phema_member *b = &set->members[j];
    struct phema_scaled inverse;
    (void)phema_scaled_from_quad(&inverse, &set->inverse_kept[b->family * set->n_times + b->time]);
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            phema_quad_from_scaled(
                &product[g],
                phema_scaled_minus(line->from[g], phema_scaled_times(line->loss[g], inverse)));
}

void phema_line_store(struct phema_products *products, const struct phema_profile_set *set,
                      size_t i, size_t j, const struct phema_line *line)
{
    bool has_target = i >= set->n || j >= set->n;
    phema_quad product[PHEMA_N_GRAMS] = {0};
    if (!has_target && i != j && line->is_scaled)
        find_scaled(product, products, set, j, line);
    else
        find_product(product, products, set, i, j, line);
    if (has_target) {
        phema_product_add(products, set, i, j, product);
        return;
    }
    /* the first of this place: to read it as 0 would take a second page fault */
    size_t at = i < j ? i * products->stride + j : j * products->stride + i;
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        products->with[g][at] = product[g];
        if (i == j)
            products->self[g][i] = product[g];
    }
}

/* ---- Closed forms ---- */

/* A B/(A+B-1) (ta/tb)^(B-1) / tb is this, times the decay, over ta */
static phema_quad white_term(phema_quad a_power, phema_quad b_power)
{
    return a_power * b_power / (a_power + b_power - 1);
}

phema_quad phema_white_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                               phema_quad decay)
{
    return white_term(a_power, b_power) * decay / ta;
}

struct walk_terms { /* product = ta (begun - decay lost) */
    phema_quad begun, lost;
};

/* ta (1 - 1/(A+1) - r/(B+1) + r/(A+B+1)) with r the decay; the last two terms over one denominator,
 * since they nearly cancel for large A */
static struct walk_terms find_walk_terms(phema_quad a_power, phema_quad b_power)
{
    return (struct walk_terms){a_power / (a_power + 1),
                               a_power / ((b_power + 1) * (a_power + b_power + 1))};
}

phema_quad phema_walk_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                              phema_quad decay)
{
    struct walk_terms terms = find_walk_terms(a_power, b_power);
    return ta * (terms.begun - decay * terms.lost);
}

struct finding {
    struct phema_products *products;
    const struct phema_profile_set *set;
    size_t *by_family; /* [n + n_parts] members, family by family, each by time */
    size_t *starts;    /* [n_families + 1] of each in by_family */
    size_t *ranks;     /* [n + n_parts] by time */
};

/* A counting sort. */
static void sort_by_family(struct finding *finding)
{
    const struct phema_profile_set *set = finding->set;
    size_t n_members = set->n + set->n_parts;
    size_t *ends = finding->starts + 1; /* while they fill, family k's is one place further */
    for (size_t i = 0; i < n_members; i++)
        ends[set->members[i].family + 1]++;
    for (size_t k = 0; k < set->n_families; k++)
        ends[k + 1] += ends[k];
    for (size_t rank = 0; rank < n_members; rank++) {
        size_t i = set->by_time[rank];
        finding->ranks[i] = rank;
        finding->by_family[ends[set->members[i].family]++] = i;
    }
}

/* The first member of family y that does not end before this one. */
static size_t find_later(const struct finding *finding, size_t i, size_t y)
{
    size_t low = finding->starts[y], high = finding->starts[y + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (finding->ranks[finding->by_family[middle]] < finding->ranks[i])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The products of a member and all that end later. */
static void find_of_member(void *context, size_t p)
{
    const struct finding *finding = context;
    const struct phema_profile_set *set = finding->set;
    size_t i = finding->by_family[p];
    const struct phema_member *a = &set->members[i];
    phema_quad time = set->times[a->time], power = set->families[a->family].power;
    for (size_t y = 0; y < set->n_families; y++) {
        const struct walk_terms walk = find_walk_terms(power, set->families[y].power);
        const phema_quad white = white_term(power, set->families[y].power);
        struct phema_line line = {
            .begun = {[PHEMA_GRAM_WALK] = time * walk.begun},
            .lost = {[PHEMA_GRAM_WHITE] = -white / time, [PHEMA_GRAM_WALK] = time * walk.lost}};
        phema_line_scale(&line, finding->products, set, a, y);
        for (size_t q = find_later(finding, i, y); q < finding->starts[y + 1]; q++)
            if (phema_product_is_wanted(finding->products, set, i, finding->by_family[q]))
                phema_line_store(finding->products, set, i, finding->by_family[q], &line);
    }
}

/* The member that ends first finds a product, so threads write to different places. */
bool phema_products_find_closed(struct phema_products *products,
                                const struct phema_profile_set *set)
{
    size_t n_members = set->n + set->n_parts;
    struct phema_arena memory = {0};
    struct finding finding = {.products = products,
                              .set = set,
                              .by_family = phema_arena_array(&memory, n_members, sizeof(size_t)),
                              .starts =
                                  phema_arena_array(&memory, set->n_families + 2, sizeof(size_t)),
                              .ranks = phema_arena_array(&memory, n_members, sizeof(size_t))};
    bool has_memory = !memory.is_failed;
    if (has_memory) {
        sort_by_family(&finding);
        phema_parallel(n_members, phema_threads_for(set->n), find_of_member, &finding);
    }
    phema_arena_clear(&memory);
    return has_memory;
}
