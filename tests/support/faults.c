// SPDX-License-Identifier: Apache-2.0
/* faults.c - for LD_PRELOAD: one call of a program fails, or all calls from that one on. Calls are
 * counted over all threads and libraries, from main on. Variables of the environment:
 *
 * - FAULT_CALLS: functions, separated by commas, by their names in the manual: "pwrite,write"; O_DIRECT:
 *   open with that flag; io_uring_read: a read by io_uring
 * - FAULT_AT: number of the call that fails, from 1; 0 or absent: none fails, calls are counted
 * - FAULT_WITH: an errno, "ENOSPC"; a signal, "KILL"; or "short": half of the requested bytes are
 *   read or written
 * - FAULT_STAYS: if set, all later calls fail as well
 * - FAULT_PATH: only calls whose path, or whose descriptor's path, contains this text
 * - FAULT_LEAST: of reads and writes only those of at least this many bytes
 * - FAULT_PAUSE: each of these calls first waits this many milliseconds
 * - FAULT_SHOWN: a file that receives what the program shows; a pause ends when it has grown twice, so
 *   that the second time is about the call
 * - FAULT_BEGUN: a file that is created when the first of these calls begins
 * - FAULT_UNTIL: a file; each of these calls waits until it exists, for FAULT_PAUSE at most
 * - FAULT_STEP: so many threads, the main one not among them, make these calls in step: each waits in its
 *   call until all others are in theirs or have ended, so that none does the work of another
 * - FAULT_TOLD: a file that receives the first failing call; if none failed, it receives the number
 *   of calls at the end of main */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef PHEMA_HAVE_URING
#include <liburing.h>
#endif

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO},       {"EINTR", EINTR},
    {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"EACCES", EACCES},
    {"EROFS", EROFS},   {"EAGAIN", EAGAIN}, {"ENOLCK", ENOLCK}, {"EOPNOTSUPP", EOPNOTSUPP},
    {"EPERM", EPERM},   {"ENOENT", ENOENT}, {"ESTALE", ESTALE}, {"EINVAL", EINVAL},
    {"EXDEV", EXDEV},   {"ENOSYS", ENOSYS}, {"EEXIST", EEXIST}};

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"STOP", SIGSTOP}};

static struct {
    const char *calls, *path, *told, *shown, *begun, *until;
    long at, pause_ms, n_in_step;
    size_t least;
    int number, signal; /* neither: short */
    bool stays;
} fault;

static _Atomic bool is_armed, has_struck, has_begun;
static _Atomic long n_calls;

/* Writes a line by system calls, without the functions replaced here. */
static void tell(const char *path, const char *call, long n)
{
    char text[128];
    if (!path)
        return;
    long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int size = snprintf(text, sizeof(text), "%s %ld\n", call, n);
    (void)syscall(SYS_write, descriptor, text, (size_t)size);
    (void)syscall(SYS_close, descriptor);
}

static bool is_chosen(const char *call)
{
    size_t size = strlen(call);
    for (const char *at = fault.calls; (at = strstr(at, call)); at += size)
        if ((at == fault.calls || at[-1] == ',') && (!at[size] || at[size] == ','))
            return true;
    return false;
}

static bool is_on_path(int descriptor, const char *path)
{
    char name[64], found[4096];
    if (!fault.path)
        return true;
    if (path && path[0])
        return strstr(path, fault.path) != NULL;
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", descriptor);
    long size = syscall(SYS_readlinkat, AT_FDCWD, name, found, sizeof(found) - 1);
    if (size < 0)
        return false;
    found[size] = 0;
    return strstr(found, fault.path) != NULL;
}

static long shown_bytes(void)
{
    struct statx found = {0};
    (void)syscall(SYS_statx, AT_FDCWD, fault.shown, 0, STATX_SIZE, &found);
    return (long)found.stx_size;
}

static bool is_there(const char *path)
{
    struct statx found;
    return syscall(SYS_statx, AT_FDCWD, path, 0, STATX_TYPE, &found) == 0;
}

/* As long as FAULT_PAUSE says, until FAULT_SHOWN has grown twice, or FAULT_UNTIL exists. */
static void pause_call(void)
{
    enum { STEP_MS = 5 };
    long step_ms = fault.shown || fault.until ? STEP_MS : fault.pause_ms, n_grown = 0;
    long size = fault.shown ? shown_bytes() : 0;
    for (long waited_ms = 0; waited_ms < fault.pause_ms && n_grown < 2; waited_ms += step_ms) {
        if (fault.until && is_there(fault.until))
            return;
        (void)nanosleep(&(struct timespec){step_ms / 1000, step_ms % 1000 * 1000000}, NULL);
        long now = fault.shown ? shown_bytes() : 0;
        n_grown += now != size;
        size = now;
    }
}

/* ---- Threads in step ---- */

enum { LONGEST_STEP_S = 60 }; /* a thread that is awaited so long never comes */

static struct {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_stepped;
    pthread_key_t
        walks; /* set in the threads that are in step, and makes them leave at their end */
    long n_joined, n_walking, n_waiting, n_steps;
} step = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_stepped = PTHREAD_COND_INITIALIZER};

/* With the lock. */
static void step_if_all_wait(void)
{
    if (step.n_waiting < step.n_walking)
        return;
    step.n_waiting = 0;
    step.n_steps++;
    (void)pthread_cond_broadcast(&step.has_stepped);
}

static void leave_step(void *unused)
{
    (void)unused;
    (void)pthread_mutex_lock(&step.lock);
    step.n_walking--;
    step_if_all_wait();
    (void)pthread_mutex_unlock(&step.lock);
}

static void keep_step(void)
{
    static const char alone[] = "faults: FAULT_STEP: fewer threads make these calls\n";
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LONGEST_STEP_S;
    if (syscall(SYS_gettid) == getpid())
        return;
    (void)pthread_mutex_lock(&step.lock);
    bool walks = pthread_getspecific(step.walks) != NULL;
    if (!walks && step.n_joined < fault.n_in_step) {
        step.n_joined++;
        walks = pthread_setspecific(step.walks, &step) == 0;
    }
    long n = step.n_steps;
    step.n_waiting += walks;
    if (walks)
        step_if_all_wait();
    while (walks && n == step.n_steps)
        if (pthread_cond_timedwait(&step.has_stepped, &step.lock, &end) == ETIMEDOUT) {
            (void)syscall(SYS_write, STDERR_FILENO, alone, sizeof(alone) - 1);
            _exit(99);
        }
    (void)pthread_mutex_unlock(&step.lock);
}

/* True if this call fails; then errno is set. */
static bool strikes(const char *call, int descriptor, const char *path)
{
    if (!atomic_load(&is_armed) || !is_chosen(call) || !is_on_path(descriptor, path))
        return false;
    if (fault.begun && !atomic_exchange(&has_begun, true))
        tell(fault.begun, call, 1);
    if (fault.pause_ms)
        pause_call();
    if (fault.n_in_step)
        keep_step();
    long n = ++n_calls;
    if (!fault.at || n < fault.at || (n > fault.at && !fault.stays))
        return false;
    if (!atomic_exchange(&has_struck, true))
        tell(fault.told, call, n);
    if (fault.signal) {
        /* Sent to the process, another thread might take it, and this one go on meanwhile. */
        (void)raise(fault.signal);
        return false;
    }
    errno = fault.number;
    return true;
}

/* ISO C has no conversion from an object pointer to a function's. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof(found));
}

/* Replaces a call, which returns `failed` when it fails. With 64-bit offsets, the names in sources
 * mean the library's functions whose names end in 64: that is `symbol`. */
#define REPLACE(type, call, symbol, parameters, arguments, descriptor, path, failed)               \
    type call parameters                                                                           \
    {                                                                                              \
        static type(*_Atomic next) parameters;                                                     \
        if (!next) {                                                                               \
            type(*found) parameters = NULL;                                                        \
            find(&found, symbol);                                                                  \
            next = found;                                                                          \
        }                                                                                          \
        if (strikes(#call, descriptor, path))                                                      \
            return failed;                                                                         \
        return next arguments;                                                                     \
    }

/* Replaces a call that may transfer fewer bytes than requested. */
#define REPLACE_SHORT(call, symbol, parameters, arguments)                                         \
    ssize_t call parameters                                                                        \
    {                                                                                              \
        static ssize_t(*_Atomic next) parameters;                                                  \
        if (!next) {                                                                               \
            ssize_t(*found) parameters = NULL;                                                     \
            find(&found, symbol);                                                                  \
            next = found;                                                                          \
        }                                                                                          \
        if (size >= fault.least && strikes(#call, descriptor, NULL)) {                             \
            if (fault.number)                                                                      \
                return -1;                                                                         \
            size = (size + 1) / 2;                                                                 \
        }                                                                                          \
        return next arguments;                                                                     \
    }

/* clang-format off */
REPLACE_SHORT(read, "read", (int descriptor, void *data, size_t size), (descriptor, data, size))
REPLACE_SHORT(write, "write", (int descriptor, const void *data, size_t size),
              (descriptor, data, size))
REPLACE_SHORT(pread, "pread64", (int descriptor, void *data, size_t size, off_t offset),
              (descriptor, data, size, offset))
REPLACE_SHORT(pwrite, "pwrite64", (int descriptor, const void *data, size_t size, off_t offset),
              (descriptor, data, size, offset))
REPLACE_SHORT(copy_file_range, "copy_file_range",
              (int from, off_t *from_offset, int descriptor, off_t *offset, size_t size,
               unsigned flags),
              (from, from_offset, descriptor, offset, size, flags))

REPLACE(int, fsync, "fsync", (int descriptor), (descriptor), descriptor, NULL, -1)
REPLACE(int, fdatasync, "fdatasync", (int descriptor), (descriptor), descriptor, NULL, -1)
REPLACE(int, syncfs, "syncfs", (int descriptor), (descriptor), descriptor, NULL, -1)
REPLACE(int, ftruncate, "ftruncate64", (int descriptor, off_t size), (descriptor, size), descriptor,
        NULL, -1)
REPLACE(int, fallocate, "fallocate64", (int descriptor, int mode, off_t offset, off_t size),
        (descriptor, mode, offset, size), descriptor, NULL, -1)
REPLACE(int, posix_fallocate, "posix_fallocate64", (int descriptor, off_t offset, off_t size),
        (descriptor, offset, size), descriptor, NULL, errno)
REPLACE(int, posix_fadvise, "posix_fadvise64",
        (int descriptor, off_t offset, off_t size, int advice), (descriptor, offset, size, advice),
        descriptor, NULL, errno)
REPLACE(int, sync_file_range, "sync_file_range",
        (int descriptor, off_t offset, off_t size, unsigned flags),
        (descriptor, offset, size, flags), descriptor, NULL, -1)
REPLACE(int, flock, "flock", (int descriptor, int operation), (descriptor, operation), descriptor,
        NULL, -1)

REPLACE(int, rename, "rename", (const char *path, const char *to), (path, to), -1, path, -1)
REPLACE(int, renameat2, "renameat2",
        (int from, const char *path, int to, const char *name, unsigned flags),
        (from, path, to, name, flags), -1, path, -1)
REPLACE(int, link, "link", (const char *path, const char *to), (path, to), -1, path, -1)
REPLACE(int, linkat, "linkat",
        (int from, const char *path, int directory, const char *to, int flags),
        (from, path, directory, to, flags), directory, to, -1)
REPLACE(int, unlink, "unlink", (const char *path), (path), -1, path, -1)
REPLACE(int, unlinkat, "unlinkat", (int descriptor, const char *path, int flags),
        (descriptor, path, flags), descriptor, path, -1)
REPLACE(int, rmdir, "rmdir", (const char *path), (path), -1, path, -1)
REPLACE(int, mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), -1, path, -1)

REPLACE(FILE *, fopen, "fopen64", (const char *path, const char *mode), (path, mode), -1, path,
        NULL)
REPLACE(DIR *, opendir, "opendir", (const char *path), (path), -1, path, NULL)
REPLACE(DIR *, fdopendir, "fdopendir", (int descriptor), (descriptor), descriptor, NULL, NULL)
REPLACE(struct dirent *, readdir, "readdir64", (DIR *directory), (directory), dirfd(directory),
        NULL, NULL)

REPLACE(int, stat, "stat64", (const char *path, struct stat *out), (path, out), -1, path, -1)
REPLACE(int, lstat, "lstat64", (const char *path, struct stat *out), (path, out), -1, path, -1)
REPLACE(int, fstat, "fstat64", (int descriptor, struct stat *out), (descriptor, out), descriptor,
        NULL, -1)
REPLACE(int, fstatat, "fstatat64",
        (int descriptor, const char *path, struct stat *out, int flags),
        (descriptor, path, out, flags), descriptor, path, -1)
REPLACE(int, faccessat, "faccessat", (int descriptor, const char *path, int mode, int flags),
        (descriptor, path, mode, flags), descriptor, path, -1)
REPLACE(int, statx, "statx",
        (int descriptor, const char *path, int flags, unsigned mask, struct statx *out),
        (descriptor, path, flags, mask, out), descriptor, path, -1)

REPLACE(void *, mmap, "mmap64",
        (void *at, size_t size, int protection, int flags, int descriptor, off_t offset),
        (at, size, protection, flags, descriptor, offset), descriptor, NULL, MAP_FAILED)
REPLACE(int, madvise, "madvise", (void *data, size_t size, int advice), (data, size, advice), -1,
        NULL, -1)
REPLACE(int, memfd_create, "memfd_create", (const char *name, unsigned flags), (name, flags), -1,
        name, -1)
REPLACE(int, pthread_create, "pthread_create",
        (pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
         void *argument),
        (thread, attributes, start, argument), -1, NULL, errno)

REPLACE(void *, malloc, "malloc", (size_t size), (size), -1, NULL, NULL)
REPLACE(void *, calloc, "calloc", (size_t n, size_t size), (n, size), -1, NULL, NULL)
REPLACE(void *, realloc, "realloc", (void *data, size_t size), (data, size), -1, NULL, NULL)
REPLACE(void *, reallocarray, "reallocarray", (void *data, size_t n, size_t size), (data, n, size),
        -1, NULL, NULL)
REPLACE(void *, aligned_alloc, "aligned_alloc", (size_t alignment, size_t size), (alignment, size),
        -1, NULL, NULL)
REPLACE(int, posix_memalign, "posix_memalign", (void **out, size_t alignment, size_t size),
        (out, alignment, size), -1, NULL, errno)
/* clang-format on */

/* ---- Functions with variable arguments ---- */

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#ifdef PHEMA_HAVE_URING
/* Where reads are to fail, io_uring is refused, so that they are calls of pread. */
int io_uring_queue_init_params(unsigned depth, struct io_uring *ring,
                               struct io_uring_params *params)
{
    int (*next)(unsigned, struct io_uring *, struct io_uring_params *) = NULL;
    find(&next, "io_uring_queue_init_params");
    if (strikes("io_uring_queue_init_params", -1, ""))
        return -errno;
    return next && !is_chosen("pread") ? next(depth, ring, params) : -ENOSYS;
}

/* Linux 6.10: an operation without effect ends with the result in its length. */
#define INJECT_RESULT 1u

static bool can_inject(void)
{
    struct utsname name;
    char *rest = NULL;
    long major = uname(&name) == 0 ? strtol(name.release, &rest, 10) : 0;
    return major > 6 || (major == 6 && *rest == '.' && strtol(rest + 1, NULL, 10) >= 10);
}

/* "io_uring_read": a read ends with an error, or half of it, in blocks, is read. */
int io_uring_submit(struct io_uring *ring)
{
    int (*next)(struct io_uring *) = NULL;
    find(&next, "io_uring_submit");
    struct io_uring_sqe *sqe = &ring->sq.sqes[(ring->sq.sqe_tail - 1) & ring->sq.ring_mask];
    bool is_read = ring->sq.sqe_tail != ring->sq.sqe_head && sqe->opcode == IORING_OP_READ;
    if (!is_read || (fault.number && !can_inject()) || !strikes("io_uring_read", -1, ""))
        return next(ring);
    if (fault.number) {
        sqe->opcode = IORING_OP_NOP;
        sqe->rw_flags = INJECT_RESULT;
        sqe->len = (unsigned)-fault.number;
    } else {
        sqe->len = sqe->len > 8192 ? sqe->len / 8192 * 4096 : sqe->len;
    }
    return next(ring);
}
#endif

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = NULL;
    find(&next, "open64");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    bool fails = strikes("open", -1, path) || ((flags & O_DIRECT) && strikes("O_DIRECT", -1, path));
    return fails ? -1 : next(path, flags, mode);
}

int openat(int descriptor, const char *path, int flags, ...)
{
    int (*next)(int, const char *, int, ...) = NULL;
    find(&next, "openat64");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return strikes("openat", descriptor, path) ? -1 : next(descriptor, path, flags, mode);
}

/* Fails only for commands that copy descriptors. */
int fcntl(int descriptor, int command, ...)
{
    int (*next)(int, int, ...) = NULL;
    find(&next, "fcntl64");
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    bool copies = command == F_DUPFD_CLOEXEC || command == F_DUPFD;
    return copies && strikes("fcntl", descriptor, NULL) ? -1 : next(descriptor, command, argument);
}

/* The descriptor is closed even if the call fails. */
int close(int descriptor)
{
    int (*next)(int) = NULL;
    find(&next, "close");
    bool fails = strikes("close", descriptor, NULL);
    int result = next(descriptor);
    if (!fails)
        return result;
    errno = fault.number;
    return -1;
}

/* ---- From main on ---- */

static int (*real_main)(int, char **, char **);

static void read_environment(void)
{
    const char *at = getenv("FAULT_AT"), *with = getenv("FAULT_WITH");
    const char *pause_ms = getenv("FAULT_PAUSE"), *n_in_step = getenv("FAULT_STEP");
    const char *least = getenv("FAULT_LEAST");
    fault.pause_ms = pause_ms ? strtol(pause_ms, NULL, 10) : 0;
    fault.least = least ? strtoul(least, NULL, 10) : 0;
    fault.n_in_step = step.n_walking = n_in_step ? strtol(n_in_step, NULL, 10) : 0;
    (void)pthread_key_create(&step.walks, leave_step);
    fault.calls = getenv("FAULT_CALLS");
    fault.path = getenv("FAULT_PATH");
    fault.told = getenv("FAULT_TOLD");
    fault.shown = getenv("FAULT_SHOWN");
    fault.begun = getenv("FAULT_BEGUN");
    fault.until = getenv("FAULT_UNTIL");
    fault.stays = getenv("FAULT_STAYS") != NULL;
    fault.at = at ? strtol(at, NULL, 10) : 0;
    for (size_t i = 0; with && i < sizeof(errors) / sizeof(errors[0]); i++)
        if (strcmp(errors[i].name, with) == 0)
            fault.number = errors[i].number;
    for (size_t i = 0; with && i < sizeof(signals) / sizeof(signals[0]); i++)
        if (strcmp(signals[i].name, with) == 0)
            fault.signal = signals[i].number;
    if (with && !fault.number && !fault.signal && strcmp(with, "short") != 0) {
        (void)fprintf(stderr,
                      "faults: FAULT_WITH: expected an errno, a signal or 'short', found '%s'\n",
                      with);
        _exit(99);
    }
}

static int main_with_faults(int argc, char **argv, char **environment)
{
    read_environment();
    atomic_store(&is_armed, fault.calls != NULL);
    int status = real_main(argc, argv, environment);
    atomic_store(&is_armed, false);
    if (!atomic_load(&has_struck))
        tell(fault.told, "calls", atomic_load(&n_calls));
    return status;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      void (*begin)(void), void (*end)(void), void (*end_linker)(void),
                      void *stack_end);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      void (*begin)(void), void (*end)(void), void (*end_linker)(void),
                      void *stack_end)
{
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *) = NULL;
    find(&next, "__libc_start_main");
    real_main = main;
    return next(main_with_faults, argc, argv, begin, end, end_linker, stack_end);
}
