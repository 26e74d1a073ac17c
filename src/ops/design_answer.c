// SPDX-License-Identifier: Apache-2.0
/* design_answer.c - the choices, what the same disk would give otherwise, and other motions. */

#include "phema/clock.h"
#include "phema/design_question.h"

/* ---- Progress ---- */

/* The search of the choices is this share of all work. */
#define SEARCH_SHARE 0.5

struct watching {
    const struct phema_listener *listener;
    double start_s;
};

static void show(const struct watching *watching, double share)
{
    const struct phema_progress state = {.done_bytes = (uint64_t)(1000 * share),
                                         .total_bytes = 1000,
                                         .elapsed_s = phema_clock_s() - watching->start_s,
                                         .stage = "planning",
                                         .is_other_unit = true};
    if (watching->listener->report)
        watching->listener->report(watching->listener->context, &state);
}

static void report(void *context, double share)
{
    show(context, SEARCH_SHARE * share);
}

/* ---- Other ways ---- */

/* Errors at all widths that are shown. */
static enum phema_status rate(struct phema_design *design, const struct design_asked *asked,
                              struct phema_error *err)
{
    return phema_design_rate(design, NULL, &asked->finer, err);
}

/* A failure of another way is no failure of the question. */
static void add_other(struct design_answer *answer, const char *name, enum phema_status found,
                      struct phema_design *design)
{
    struct phema_error ignored = {0};
    if (found)
        return;
    if (rate(design, answer->asked, &ignored)) {
        phema_design_clear(design);
        return;
    }
    answer->others[answer->n_others++] = (struct design_other){name, *design};
}

static void add_usual(struct design_answer *answer, const struct phema_design_usual *usual)
{
    struct phema_error ignored = {0};
    struct phema_design_question question = answer->asked->question;
    struct phema_design_width widths[3];
    size_t n = 0;
    question.grain = 0;
    question.shape = PHEMA_SHAPE_POWER;
    question.other_bytes = usual->has_raw ? question.other_bytes : 0;
    question.disk_bytes = answer->choices.items[answer->choices.chosen].disk_bytes;
    for (; n < usual->n_widths; n++)
        if (phema_design_width_make(&widths[n], usual->sigma_rels[n], usual->dtype, &question,
                                    &ignored))
            return;
    if (usual->has_raw)
        widths[n++] = (struct phema_design_width){
            .profile.shape = PHEMA_SHAPE_RAW, .sigma_rel = PHEMA_UNKNOWN, .dtype = usual->dtype};
    struct phema_design design;
    enum phema_status status = phema_design_make_even(&design, widths, n, &question, &ignored);
    add_other(answer, usual->name, status, &design);
}

/* One more width, one less, raw parameters beside one: within the chosen disk. */
static void add_searched(struct design_answer *answer, const char *name, size_t n_widths,
                         bool has_raw)
{
    struct phema_error ignored = {0};
    struct phema_design_question question = answer->asked->question;
    struct phema_design design;
    question.disk_bytes = answer->choices.items[answer->choices.chosen].disk_bytes;
    question.least_widths = question.most_widths = n_widths;
    question.has_raw = has_raw;
    add_other(answer, name, phema_design_find(&design, &question, &ignored), &design);
}

static void add_others(struct design_answer *answer, struct watching *watching)
{
    static const char *const more[] = {"", "one width", "two widths", "three widths",
                                       "four widths"};
    const struct design_trainer *trainer = answer->asked->trainer;
    const struct phema_design *chosen = &answer->choices.items[answer->choices.chosen];
    size_t n = chosen->n_widths; /* averages: raw parameters come last */
    n -= chosen->widths[n - 1].profile.shape == PHEMA_SHAPE_RAW;
    if (answer->asked->is_deleted)
        return; /* a training that has begun has no other choice */
    if (!answer->asked->question.n_fixed) {
        if (n > 1 && n - 1 >= trainer->least_widths)
            add_searched(answer, more[n - 1], n - 1, trainer->has_raw);
        show(watching, 0.6);
        if (n < trainer->most_widths)
            add_searched(answer, more[n + 1], n + 1, trainer->has_raw);
        if (!trainer->has_raw && trainer->least_widths == 1)
            add_searched(answer, "one and raw", 1, true);
    }
    show(watching, 0.7);
    for (size_t i = 0; i < PHEMA_DESIGN_N_USUAL; i++)
        add_usual(answer, &phema_design_usuals[i]);
}

/* ---- Other motions ---- */

static enum phema_status rate_motions(struct design_answer *answer, struct watching *watching,
                                      struct phema_error *err)
{
    struct phema_design chosen = answer->choices.items[answer->choices.chosen];
    for (size_t m = 0; m < PHEMA_N_MOVING; m++) {
        struct design_asked other = *answer->asked;
        struct design_motion *motion = &answer->motions[answer->n_motions];
        if (answer->asked->question.motion.moving == (enum phema_design_moving)m)
            continue;
        other.question.motion = other.finer.motion =
            (struct phema_design_motion){.moving = (enum phema_design_moving)m};
        other.question.disk_bytes = chosen.disk_bytes;
        enum phema_status status = rate(&chosen, &other, err);
        if (status)
            return status;
        *motion =
            (struct design_motion){phema_moving_names[m], chosen.worst_error, {.times = NULL}};
        status = phema_design_find(&motion->best, &other.question, err);
        if (status)
            return status;
        answer->n_motions++;
        status = rate(&motion->best, &other, err);
        if (status)
            return status;
        show(watching, 0.7 + 0.3 * (double)(m + 1) / PHEMA_N_MOVING);
    }
    return PHEMA_OK;
}

static enum phema_status complete(struct design_answer *answer, struct watching *watching,
                                  struct phema_error *err)
{
    for (size_t i = 0; i < answer->choices.n; i++) { /* err may have the message of PHEMA_NO */
        enum phema_status status = rate(&answer->choices.items[i], answer->asked, err);
        if (status)
            return status;
    }
    add_others(answer, watching);
    return rate_motions(answer, watching, err);
}

PHEMA_FALLIBLE design_answer_find(struct design_answer *out, const struct design_asked *asked,
                                  const struct phema_listener *listener, struct phema_error *err)
{
    struct watching watching = {listener, phema_clock_s()};
    struct phema_design_question question = asked->question;
    *out = (struct design_answer){.asked = asked};
    if (listener->begin)
        listener->begin(listener->context, PHEMA_KEEPS_NOTHING);
    question.report = report;
    question.context = &watching;
    enum phema_status status = phema_design_choose(&out->choices, &question, err);
    enum phema_status completed = PHEMA_OK;
    if (!status || status == PHEMA_NO)
        completed = complete(out, &watching, err);
    if (listener->end)
        listener->end(listener->context);
    if (completed)
        design_answer_clear(out);
    return completed ? completed : status;
}

void design_answer_clear(struct design_answer *answer)
{
    phema_design_choices_clear(&answer->choices);
    for (size_t i = 0; i < answer->n_others; i++)
        phema_design_clear(&answer->others[i].design);
    for (size_t m = 0; m < answer->n_motions; m++)
        phema_design_clear(&answer->motions[m].best);
    answer->n_others = answer->n_motions = 0;
}
