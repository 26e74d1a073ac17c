// SPDX-License-Identifier: Apache-2.0
/* usual_averages.c - the SPECs of the averages that libraries keep. */
#include "usual_averages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/span.h"
#include "phema/strbuf.h"

/* What a plain decay leaves out, as keys after it, or an average of its own. %g: a number that is tried,
 * or the time of the newest snapshot times `share`. */
struct form {
    const char *keys;
    const char *meaning;
    double share;
};

static const struct form updates = {",every=%g", "an update every %g steps", 0};
static const double intervals[] = {2, 4, 5, 8, 10, 16, 20, 32, 50, 100};

static const struct form warmups[] = {
    {",warmup=ratio", "a warm-up as in torch-ema and LitEma", 0},
    {",warmup=ratio:0,1", "a warm-up as of Mean Teacher, which begins as the plain mean", 0},
    {",warmup=power,offset=-1", "a warm-up as in timm", 0},
    {",warmup=exp", "a warm-up as in Ultralytics", 0},
    {",warmup=exp:%g", "a warm-up over the planned length", 1.0 / 15},
    {",warmup=power,every=10,phase=1,start=101,before=copy", "as in ema-pytorch", 0},
    {",warmup=ratio:0,100,offset=-1", "a warm-up as in MMEngine's annealing", 0},
    {",warmup=ramp,offset=-1", "a ramp as in EDM and StyleGAN", 0},
};

/* They begin with a decay that is typed for all of it. */
static const struct form schedules[] = {
    {"dino:momentum=0.992,total=%g", "a schedule that reaches 1", 1},
    {"dino:momentum=0.996,total=%g", "a schedule that reaches 1", 1},
};

static const struct form decay_alone = {"ema:decay=%g", "", 0};
static const double decays[] = {0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99995};

static const struct form extremes[] = {
    {"ema:half-life=%g", "hardly anything is forgotten within the run", 2},
    {"raw", "raw parameters, not averages", 0},
};

/* Puts the number in place of %g. */
static void fill(char *out, size_t size, const char *before, const char *text, double number)
{
    struct phema_name_buffer shown;
    const char *percent = strstr(text, "%g");
    size_t n = percent ? (size_t)(percent - text) : strlen(text);
    (void)snprintf(out, size, "%s%.*s%s%s", before, (int)n, text,
                   percent ? phema_number_format(&shown, number) : "", percent ? percent + 2 : "");
}

static bool make(struct usual_average *out, const char *before, const struct form *form,
                 double number)
{
    fill(out->spec, sizeof(out->spec), before, form->keys, number);
    fill(out->meaning, sizeof(out->meaning), "", form->meaning, number);
    return true;
}

bool usual_average_updates(struct usual_average *out, const char *decay, size_t i)
{
    return i < ARRAY_LEN(intervals) && make(out, decay, &updates, intervals[i]);
}

bool usual_average_warmup(struct usual_average *out, const char *decay, size_t i, double end)
{
    return i < ARRAY_LEN(warmups) && make(out, decay, &warmups[i], round(warmups[i].share * end));
}

bool usual_average(struct usual_average *out, size_t i, double end)
{
    if (i < ARRAY_LEN(schedules))
        return make(out, "", &schedules[i], round(schedules[i].share * end));
    i -= ARRAY_LEN(schedules);
    if (i < ARRAY_LEN(decays))
        return make(out, "", &decay_alone, decays[i]);
    i -= ARRAY_LEN(decays);
    return i < ARRAY_LEN(extremes) && make(out, "", &extremes[i], round(extremes[i].share * end));
}
