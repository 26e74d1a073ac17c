/* progress.h - how far a run is: a bar on a terminal, lines or JSON elsewhere. */
#ifndef PHEMA_PROGRESS_H
#define PHEMA_PROGRESS_H

#include "phema/ops.h"
#include "phema/render.h"

/* The first second says little about the rate of the others. */
#define PROGRESS_KNOWN_AFTER_S 1.0

#define PROGRESS_FAREWELL 96
struct progress {
    enum progress_style style; /* not auto */
    const char *label;         /* before the stage: one of several runs; NULL: none */
    double last_s;
    bool is_utf8;
    size_t n_drawn; /* columns of the line on the terminal */
    enum phema_kept kept;
    const char *with;     /* what the command that goes on has besides, such as " with --at 1000" */
    const char *farewell; /* in place of all others, also while no bar is shown; NULL: none */
    /* The text for a signal: the handler may still read one while the other is written. */
    char farewells[2][PROGRESS_FAREWELL + 16];
    unsigned n_farewells;
};

/* auto: a bar on a terminal that can draw one, else a line every 10 s. */
void progress_init(struct progress *progress, const struct render_style *style);
/* context: a struct progress; for synth.h */
void progress_report(void *context, const struct phema_progress *state);
/* Replaces the bar with a line. For PROGRESS_BAR alone. */
void progress_line(struct progress *progress, const char *text);
/* What a signal leaves behind, for the line that tells so: "stopped; nothing was written". */
void progress_set_farewell(struct progress *progress, const char *text);
/* Erases the bar; another run may begin. */
void progress_finish(struct progress *progress);

/* Shows a stage and its time on stderr when it takes longer than a second, from a thread of its
 * own. NULL without memory, which the others take. Nothing else may print until it is stopped. */
struct watch *watch_start(const struct render_style *style, const char *stage);
void watch_stop(struct watch *watch);

/* Shows what ops tell. Others may replace callbacks, with a struct that begins with this one. */
struct render_listener {
    struct phema_listener heard; /* the context is this struct */
    struct render_style style;
    bool hides_errors; /* the verb prints the errors to expect itself */
    const char *label; /* of the progress; NULL: none */
    char with[40];     /* see struct progress */
    const char *farewell;
    struct progress progress;
    struct watch *watch;
};
void render_listen(struct render_listener *out, const struct render_style *style);

/* phema_plan_make, which shows what it does when that takes longer than a second. */
PHEMA_FALLIBLE watch_make_plan(struct phema_plan **out, const struct render_style *style,
                               const struct phema_plan_options *options, struct phema_error *err);

#endif
