// SPDX-License-Identifier: Apache-2.0
/* command.c - runs the scoring command and finds the score in its output. The command has its own
 * process group, so that all its processes can be ended. Signals of the terminal then reach it only
 * through this program. A watcher in that group ends it when this program is killed. */
#include "phema/search.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/clock.h"
#include "phema/number.h"
#include "phema/setting.h"

extern char **environ;

/* Time between two checks of a command, and of a command that has closed its output and will end
 * soon. */
#define POLL_MS     100
#define END_POLL_MS 10

/* Time between SIGTERM and SIGKILL. */
#define GRACE_S 5.0

/* Longest line that a message quotes. */
#define MAX_QUOTED ((size_t)300)

struct running {
    const struct phema_command_options *options;
    struct phema_command_result *result;
    pid_t pid;
    struct phema_cleanup_entry *group;
    pid_t watcher; /* 0: none */
    int watched;   /* our end of the watcher's pipe, which closes with this program */
    int pipes[2];  /* standard output, standard error; -1: closed */
    double start_s;
    double asked_s; /* time of SIGTERM; 0: not sent */
};

static double elapsed(const struct running *running)
{
    return phema_clock_s() - running->start_s;
}

static enum phema_status fail_errno(struct phema_error *err, const char *what, int number)
{
    bool is_missing = number == ENOENT || number == EACCES || number == ENOEXEC ||
                      number == ENOTDIR || number == E2BIG || number == ELOOP ||
                      number == ENAMETOOLONG;
    return phema_fail(err, is_missing ? PHEMA_ERR_COMMAND : PHEMA_ERR_RESOURCE, "%s: %s", what,
                      strerror(number));
}

/* ---- Starting ---- */

/* Signal state as for a program that a shell starts. Setting fails only of invalid arguments. */
static void set_attributes(posix_spawnattr_t *attributes, pid_t group)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    /* ignored ones stay ignored, as under nohup */
    static const int kept[] = {SIGHUP, SIGINT, SIGQUIT};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct sigaction action;
        if (sigaction(kept[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            (void)sigdelset(&all, kept[i]);
    }
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &all);
    (void)posix_spawnattr_setpgroup(attributes, group);
    (void)posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                   POSIX_SPAWN_SETPGROUP);
}

/* group 0: the process leads a new group. streams: standard input, output and error; -1:
 * /dev/null. */
static int spawn(pid_t *pid, pid_t group, char *const *words, const int streams[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    set_attributes(&attributes, group);
    for (int i = 0; i < 3 && !failed; i++)
        failed = streams[i] < 0 ? posix_spawn_file_actions_addopen(&actions, i, "/dev/null",
                                                                   i ? O_WRONLY : O_RDONLY, 0)
                                : posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    if (!failed)
        failed = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

PHEMA_FALLIBLE phema_command_check(char *const *words, struct phema_error *err)
{
    const char *name = words[0], *at = strchr(name, '/') ? "" : getenv("PATH");
    int number = ENOENT;
    if (!at) /* the directories are those of the system */
        return PHEMA_OK;
    while (at) {
        size_t size = strcspn(at, ":");
        struct phema_strbuf path = {0};
        struct stat st;
        phema_strbuf_printf(&path, "%.*s%s%s", (int)size, at, size ? "/" : "", name);
        bool is_there = path.is_failed || (stat(path.data, &st) == 0 && S_ISREG(st.st_mode));
        bool is_found = is_there && (path.is_failed || access(path.data, X_OK) == 0);
        number = is_there ? errno : number;
        phema_strbuf_clear(&path);
        if (is_found)
            return PHEMA_OK;
        at = at[size] ? at + size + 1 : NULL;
    }
    return phema_fail(err, PHEMA_ERR_USAGE, "'%s' cannot be run: %s", name, strerror(number));
}

/* A program cannot act on SIGKILL, and its command would continue for hours, perhaps on a GPU. So a
 * shell in the command's group waits for the end of a pipe that nobody writes to. The pipe closes
 * when this program ends, and the shell then sends SIGTERM to the group. PR_SET_PDEATHSIG would
 * reach only the command itself, not the processes that a script has started. The group exists as
 * long as the shell is in it, so its number cannot be reused. If the shell does not start, the
 * command runs without this protection. */
static void start_watcher(struct running *running)
{
    char sh[] = "/bin/sh", c[] = "-c", script[] = "read -r line; kill -s TERM -- \"-$1\"";
    char group[24];
    (void)snprintf(group, sizeof(group), "%ld", (long)running->pid);
    char *const words[] = {sh, c, script, sh, group, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return;
    const int streams[3] = {ends[0], -1, -1};
    bool is_there = spawn(&running->watcher, running->pid, words, streams) == 0;
    (void)close(ends[0]);
    if (is_there) {
        running->watched = ends[1];
        return;
    }
    (void)close(ends[1]);
    running->watcher = 0;
}

/* Kills the watcher before its pipe closes, so that it signals nobody. */
static void end_watcher(struct running *running)
{
    if (!running->watcher)
        return;
    (void)kill(running->watcher, SIGKILL);
    (void)TEMP_FAILURE_RETRY(waitpid(running->watcher, NULL, 0));
    (void)close(running->watched);
}

static enum phema_status start(struct running *running, char *const *words, struct phema_error *err)
{
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC))
        return fail_errno(err, "no pipe", errno);
    running->pipes[0] = out[0];
    if (pipe2(errors, O_CLOEXEC)) {
        int number = errno;
        (void)close(out[1]);
        return fail_errno(err, "no pipe", number);
    }
    running->pipes[1] = errors[0];
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(errors[0], F_SETFL, O_NONBLOCK);
    phema_cleanup_hold();
    const int streams[3] = {-1, out[1], errors[1]};
    int failed = spawn(&running->pid, 0, words, streams);
    enum phema_status status = failed ? fail_errno(err, "cannot be run", failed)
                                      : phema_cleanup_add_group(&running->group, running->pid, err);
    phema_cleanup_resume();
    (void)close(out[1]);
    (void)close(errors[1]);
    if (!status) {
        start_watcher(running);
    } else if (!failed) {
        (void)kill(-running->pid, SIGKILL);
        (void)waitpid(running->pid, NULL, 0);
    }
    return status;
}

/* ---- Listening ---- */

static void keep_end(struct phema_strbuf *text)
{
    if (text->is_failed || text->size <= 2 * PHEMA_COMMAND_KEPT_BYTES)
        return;
    size_t dropped = text->size - PHEMA_COMMAND_KEPT_BYTES;
    memmove(text->data, text->data + dropped, PHEMA_COMMAND_KEPT_BYTES);
    text->size = PHEMA_COMMAND_KEPT_BYTES;
    text->data[text->size] = '\0';
}

/* Reads everything that is available now. */
static void read_pipe(struct running *running, size_t which)
{
    struct phema_strbuf *text = which ? &running->result->errors : &running->result->output;
    char buffer[65536];
    while (running->pipes[which] >= 0) {
        ssize_t size = TEMP_FAILURE_RETRY(read(running->pipes[which], buffer, sizeof(buffer)));
        if (size < 0 && errno == EAGAIN)
            return;
        if (size <= 0) {
            (void)close(running->pipes[which]);
            running->pipes[which] = -1;
            return;
        }
        phema_strbuf_append(text, buffer, (size_t)size);
        keep_end(text);
        if (which && running->options->shows_errors) {
            ssize_t shown = write(STDERR_FILENO, buffer, (size_t)size);
            (void)shown; /* a failure to show messages is ignored */
        }
    }
}

static void end_group(struct running *running)
{
    double now = elapsed(running);
    if (!(running->asked_s > 0)) {
        running->asked_s = now;
        (void)kill(-running->pid, SIGTERM);
    } else if (now - running->asked_s > GRACE_S) {
        (void)kill(-running->pid, SIGKILL);
    }
}

static bool has_ended(const struct running *running)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)running->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == running->pid;
}

static void read_until_end(struct running *running)
{
    const struct phema_command_options *options = running->options;
    for (bool over = false; !over;) {
        struct pollfd polled[2] = {{.fd = running->pipes[0], .events = POLLIN},
                                   {.fd = running->pipes[1], .events = POLLIN}};
        bool is_closed = running->pipes[0] < 0 && running->pipes[1] < 0;
        (void)poll(polled, 2, is_closed ? END_POLL_MS : POLL_MS);
        over = has_ended(running); /* before its last output is read */
        read_pipe(running, 0);
        read_pipe(running, 1);
        double now = elapsed(running);
        if (!over && options->timeout_s > 0 && now > options->timeout_s)
            end_group(running);
        if (!over && options->report)
            options->report(options->context, now);
    }
}

/* ---- Result ---- */

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

/* The last nonempty line of the first *end bytes, without blanks around it; *end moves before the
 * line. A carriage return also ends a line, as in progress bars. */
static struct phema_span find_last_line(const struct phema_strbuf *text, size_t *end)
{
    const char *data = text->data;
    size_t size = *end;
    while (size && (is_end(data[size - 1]) || phema_is_blank((uint8_t)data[size - 1])))
        size--;
    size_t first = size;
    while (first && !is_end(data[first - 1]))
        first--;
    *end = first;
    while (first < size && phema_is_blank((uint8_t)data[first]))
        first++;
    return (struct phema_span){(const uint8_t *)data + first, size - first};
}

static enum phema_status check_result(const struct running *running, int state,
                                      struct phema_error *err)
{
    const struct phema_command_result *result = running->result;
    if (phema_strbuf_check(&result->output, err) || phema_strbuf_check(&result->errors, err))
        return PHEMA_ERR_RESOURCE;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return PHEMA_OK;
    const struct phema_strbuf *printed = result->errors.size ? &result->errors : &result->output;
    size_t end = printed->size;
    struct phema_span line = {0};
    if (end)
        line = find_last_line(printed, &end);
    int size = (int)(line.size < MAX_QUOTED ? line.size : MAX_QUOTED);
    const char *text = size ? (const char *)line.data : "and printed nothing";
    const char *between = size ? ": " : ", ";
    size = size ? size : (int)strlen(text);
    if (running->asked_s > 0)
        return phema_fail(err, PHEMA_ERR_COMMAND, "took longer than %g s, and was ended%s%.*s",
                          running->options->timeout_s, between, size, text);
    if (WIFSIGNALED(state))
        return phema_fail(err, PHEMA_ERR_COMMAND, "was ended by signal %d (%s)%s%.*s",
                          WTERMSIG(state), strsignal(WTERMSIG(state)), between, size, text);
    return phema_fail(err, PHEMA_ERR_COMMAND, "ended with status %d%s%.*s", WEXITSTATUS(state),
                      between, size, text);
}

PHEMA_FALLIBLE phema_command_run(struct phema_command_result *out, char *const *words,
                                 const struct phema_command_options *options,
                                 struct phema_error *err)
{
    *out = (struct phema_command_result){0};
    struct running running = {.options = options, .result = out, .pipes = {-1, -1}};
    running.start_s = phema_clock_s();
    enum phema_status status = start(&running, words, err);
    if (!status) {
        read_until_end(&running);
        end_watcher(&running);
        int state = 0;
        phema_cleanup_remove(running.group);
        (void)TEMP_FAILURE_RETRY(waitpid(running.pid, &state, 0));
        out->elapsed_s = elapsed(&running);
        status = check_result(&running, state, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(running.pipes); i++)
        if (running.pipes[i] >= 0)
            (void)close(running.pipes[i]);
    return status;
}

void phema_command_clear(struct phema_command_result *result)
{
    phema_strbuf_clear(&result->output);
    phema_strbuf_clear(&result->errors);
}

/* ---- The score ---- */

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
    enum phema_status status = PHEMA_OK;
    for (size_t end = output->size; end && !out->data && !status;) {
        struct phema_span line = find_last_line(output, &end);
        if (line.size && pattern)
            status = match_line(out, pattern, line, err);
        else if (line.size)
            *out = line;
    }
    return status;
}

PHEMA_FALLIBLE phema_command_score(double *out, const struct phema_strbuf *output,
                                   struct phema_regex *pattern, struct phema_error *err)
{
    struct phema_span text;
    enum phema_status status = find_text(&text, output, pattern, err);
    if (status)
        return status;
    const char *setting = phema_setting_name(PHEMA_SET_SCORE_REGEX);
    if (!text.data && pattern)
        return phema_fail(err, PHEMA_ERR_COMMAND, "no line of its output matches %s", setting);
    if (!text.data)
        return phema_fail(err, PHEMA_ERR_COMMAND,
                          "printed nothing; expected a score in its last line");
    double score = 0;
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, (const char *)text.data, text.size);
    if (!phema_decimal_parse(&score, text))
        return pattern ? phema_fail(err, PHEMA_ERR_COMMAND,
                                    "expected a number where %s matches, found '%s'", setting,
                                    shown.text)
                       : phema_fail(err, PHEMA_ERR_COMMAND,
                                    "expected a number in the last line of its output, found "
                                    "'%s'; %s finds one elsewhere",
                                    shown.text, setting);
    if (isfinite(score) && fabs(score) > PHEMA_LARGEST_SCORE)
        return phema_fail(err, PHEMA_ERR_COMMAND, "expected a score of at most %g, found %s",
                          PHEMA_LARGEST_SCORE, shown.text);
    *out = score;
    return PHEMA_OK;
}
