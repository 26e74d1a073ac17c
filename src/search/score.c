// SPDX-License-Identifier: Apache-2.0
/* score.c - finds the score in the output of a command. */
#include "phema/search.h"

#include <math.h>

#include "last_line.h"
#include "phema/number.h"

#define LARGEST_SCORE 1e100 /* differences of scores must be finite */

static enum phema_status match_line(struct phema_span *out, struct phema_regex *pattern,
                                    struct phema_span line, struct phema_error *err)
{
    const char *text = (const char *)line.data;
    bool is_match = false;
    enum phema_status status = phema_regex_match(pattern, text, line.size, &is_match, err);
    *out = (struct phema_span){0};
    if (status || !is_match)
        return status;
    *out = phema_regex_group(pattern, text, "score");
    if (!out->data)
        *out = phema_regex_numbered(pattern, text, 1);
    if (!out->data)
        *out = phema_regex_numbered(pattern, text, 0);
    return PHEMA_OK;
}

/* The text that should be the score; {NULL, 0} if the output has no such text. */
static enum phema_status find_text(struct phema_span *out, const struct phema_strbuf *output,
                                   struct phema_regex *pattern, struct phema_error *err)
{
    *out = (struct phema_span){0};
    for (size_t end = output->size; end && !out->data;) {
        struct phema_span line = last_line_find(output, &end);
        enum phema_status status = PHEMA_OK;
        if (line.size && pattern)
            status = match_line(out, pattern, line, err);
        else if (line.size)
            *out = line;
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_command_score(double *out, const struct phema_strbuf *output,
                                   struct phema_regex *pattern, struct phema_error *err)
{
    struct phema_span text;
    enum phema_status status = find_text(&text, output, pattern, err);
    if (status)
        return status;
    if (!text.data)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s",
                          pattern ? "no line of its output matches --score-regex"
                                  : "printed nothing; expected a score in its last line");
    double score = 0;
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, (const char *)text.data, text.size);
    if (!phema_decimal_parse(&score, text))
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected a number %s, found '%s'%s",
                          pattern ? "where --score-regex matches"
                                  : "in the last line of its output",
                          shown.text, pattern ? "" : "; --score-regex finds one elsewhere");
    if (isfinite(score) && fabs(score) > LARGEST_SCORE)
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected a score of at most %g, found %s",
                          LARGEST_SCORE, shown.text);
    *out = score;
    return PHEMA_OK;
}
