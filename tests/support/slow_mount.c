// SPDX-License-Identifier: Apache-2.0
/* slow_mount.c - a view of a directory whose reads take time, for commands that should have many
 * reads in flight. A FUSE filesystem, so that mapped pages, read-ahead and O_DIRECT are as slow as
 * pread. The page cache of the view is empty at the start of each command.
 *
 *   slow_mount [OPTION...] DIRECTORY VIEW COMMAND...
 *   --delay MS       a read is answered so long after its request
 *   --until N        reads are answered as soon as N are in flight, or when all threads of the command
 *                    sleep: then it has waited for fewer in vain. A page is read once in this way, and
 *                    again at once if the kernel has reclaimed it since
 *   --rate MB        all together transfer at most so much in a second
 *   --read-ahead KB  of the kernel, where root runs this (else 128)
 *   --blocks         a read past the page cache returns to its caller when it is answered
 *   --short KB|half  no page cache (direct_io), and answers that are shorter than what was asked for:
 *                    none crosses a multiple of so many KiB, or each has half of the bytes
 *   --flip N         byte N of a file is wrong in the first answer that has it, and right in others
 *   --report FILE    gets counts of the reads, as a line of JSON; first_bytes: without what is read again
 *
 * The mount exists for the command alone. Exit status: the command's; 77 where mounting is not
 * allowed. It speaks the kernel's protocol itself (linux/fuse.h), read-only. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Reads in flight need no thread each: those that receive pass them on to those that answer. */
enum { N_RECEIVING = 16, N_ANSWERING = 32, MOST_IN_FLIGHT = 16384 };
enum { LARGEST_READ = 1 << 20, PAGE = 4096, CANNOT_MOUNT = 77 };
/* The command waits if it has slept for so many looks. */
enum { LOOK_NS = 1000000, N_LOOKS = 8 };

#define CACHED_S ((uint64_t)3600) /* how long the kernel relies on names and sizes */
#define NO_RATE  UINT64_MAX

/* A file or directory of the view. Its number is FUSE_ROOT_ID plus its place in the table. */
struct node {
    char *path;       /* below the directory; "" for itself */
    uint8_t *is_read; /* [n_pages], which have been requested */
    uint64_t n_pages;
};

/* A read that is not answered yet. */
struct read {
    uint64_t request, file, offset;
    uint64_t number; /* in the order of arrival, from 1 */
    uint64_t due_ns;
    bool is_again; /* all its pages have been requested before */
    size_t size;
    struct read *next;
};

static struct {
    int device;    /* of FUSE */
    int directory; /* whose view it is */
    uint64_t delay_ns, rate, until;
    bool blocks, is_short, flips;
    uint64_t flipped; /* the place of that byte */
    uint64_t piece; /* bytes that no short answer crosses a multiple of; 0: half of what is asked */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_read, has_released;
    struct read *first, *last; /* that no thread answers yet */
    uint64_t n_released;       /* the first so many reads need not wait */
    pid_t command;             /* 0: not started */
    struct node *nodes;
    size_t n_nodes;
    uint64_t n_in_flight, link_free_ns;
    uint64_t n_reads, n_waiting, n_in_vain, n_bytes, n_first_bytes, most_in_flight;
} view = {.rate = NO_RATE, .lock = PTHREAD_MUTEX_INITIALIZER};

static void fail(int status, const char *what)
{
    (void)fprintf(stderr, "slow_mount: %s: %s%s\n", what, strerror(errno),
                  status == CANNOT_MOUNT ? "; to run it: sudo scripts/test -R cli" : "");
    _exit(status);
}

/* ---- Replies ---- */

static void reply(uint64_t request, int error, void *data, size_t size)
{
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof(header) + size), .error = -error, .unique = request};
    struct iovec parts[] = {{&header, sizeof(header)}, {data, size}};
    (void)!writev(view.device, parts, size ? 2 : 1); /* a request may have been interrupted */
}

static void reply_error(uint64_t request, int error)
{
    reply(request, error, NULL, 0);
}

/* ---- Names ---- */

/* The path of a node; "." for the directory itself. Paths are never freed. */
static const char *path_of(uint64_t number)
{
    (void)pthread_mutex_lock(&view.lock);
    const char *path = view.nodes[number - FUSE_ROOT_ID].path;
    (void)pthread_mutex_unlock(&view.lock);
    return path[0] ? path : ".";
}

static uint64_t number_of(char *path)
{
    (void)pthread_mutex_lock(&view.lock);
    size_t i = 0;
    while (i < view.n_nodes && strcmp(view.nodes[i].path, path) != 0)
        i++;
    if (i == view.n_nodes) {
        struct node *nodes = realloc(view.nodes, (view.n_nodes + 1) * sizeof(*nodes));
        if (!nodes)
            fail(1, "memory");
        view.nodes = nodes;
        view.nodes[view.n_nodes++] = (struct node){.path = path};
    } else {
        free(path);
    }
    (void)pthread_mutex_unlock(&view.lock);
    return FUSE_ROOT_ID + i;
}

static void set_attributes(struct fuse_attr *out, const struct stat *st)
{
    *out = (struct fuse_attr){.ino = st->st_ino,
                              .size = (uint64_t)st->st_size,
                              .blocks = (uint64_t)st->st_blocks,
                              .mtime = (uint64_t)st->st_mtim.tv_sec,
                              .mtimensec = (uint32_t)st->st_mtim.tv_nsec,
                              .ctime = (uint64_t)st->st_ctim.tv_sec,
                              .ctimensec = (uint32_t)st->st_ctim.tv_nsec,
                              .mode = st->st_mode,
                              .nlink = (uint32_t)st->st_nlink,
                              .blksize = 4096};
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
    struct stat st;
    char *path = NULL;
    const char *parent = path_of(in->nodeid);
    if (asprintf(&path, "%s%s%s", strcmp(parent, ".") == 0 ? "" : parent,
                 strcmp(parent, ".") == 0 ? "" : "/", name) < 0)
        fail(1, "memory");
    if (fstatat(view.directory, path, &st, 0) != 0) {
        reply_error(in->unique, errno);
        free(path);
        return;
    }
    struct fuse_entry_out out = {
        .nodeid = number_of(path), .entry_valid = CACHED_S, .attr_valid = CACHED_S};
    set_attributes(&out.attr, &st);
    reply(in->unique, 0, &out, sizeof(out));
}

static void get_attributes(const struct fuse_in_header *in)
{
    struct stat st;
    if (fstatat(view.directory, path_of(in->nodeid), &st, 0) != 0) {
        reply_error(in->unique, errno);
        return;
    }
    struct fuse_attr_out out = {.attr_valid = CACHED_S};
    set_attributes(&out.attr, &st);
    reply(in->unique, 0, &out, sizeof(out));
}

/* ---- Directories ---- */

static void open_directory(const struct fuse_in_header *in)
{
    int descriptor =
        openat(view.directory, path_of(in->nodeid), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!stream) {
        reply_error(in->unique, errno);
        return;
    }
    struct fuse_open_out out = {.fh = (uint64_t)(uintptr_t)stream};
    reply(in->unique, 0, &out, sizeof(out));
}

static void read_directory(const struct fuse_in_header *in, const struct fuse_read_in *read)
{
    DIR *stream = (DIR *)(uintptr_t)read->fh; // NOLINT(performance-no-int-to-ptr)
    char *out = calloc(1, read->size);
    size_t size = 0;
    if (!out)
        fail(1, "memory");
    seekdir(stream, (long)read->offset);
    for (const struct dirent *entry; (entry = readdir(stream));) {
        size_t length = strlen(entry->d_name), bytes = FUSE_NAME_OFFSET + length;
        if (size + FUSE_DIRENT_ALIGN(bytes) > read->size)
            break;
        struct fuse_dirent *next = (struct fuse_dirent *)(void *)(out + size);
        *next = (struct fuse_dirent){.ino = entry->d_ino,
                                     .off = (uint64_t)telldir(stream),
                                     .namelen = (uint32_t)length,
                                     .type = entry->d_type};
        memcpy(next->name, entry->d_name, length);
        size += FUSE_DIRENT_ALIGN(bytes);
    }
    reply(in->unique, 0, out, size);
    free(out);
}

/* ---- Files ---- */

static void open_file(const struct fuse_in_header *in)
{
    int descriptor = openat(view.directory, path_of(in->nodeid), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        reply_error(in->unique, errno);
        return;
    }
    struct fuse_open_out out = {.fh = (uint64_t)descriptor,
                                .open_flags = view.is_short ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE};
    reply(in->unique, 0, &out, sizeof(out));
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

/* Bytes of an answer. A short answer for a page of a mapping would end the file for the kernel. */
static size_t answer_bytes(uint64_t offset, size_t asked)
{
    size_t size = asked < LARGEST_READ ? asked : LARGEST_READ;
    if (!view.is_short || size <= PAGE)
        return size;
    if (!view.piece)
        return size / 2 > PAGE ? size / 2 : PAGE;
    uint64_t left = view.piece - offset % view.piece;
    return size < left ? size : (size_t)left;
}

/* With the lock. Whether all pages of a read have been requested before; now they have. */
static bool was_read(struct node *node, uint64_t offset, size_t size)
{
    uint64_t end = (offset + size + PAGE - 1) / PAGE;
    if (end > node->n_pages) {
        uint8_t *is_read = realloc(node->is_read, end);
        if (!is_read)
            fail(1, "memory");
        memset(is_read + node->n_pages, 0, end - node->n_pages);
        node->is_read = is_read;
        node->n_pages = end;
    }
    bool was = true;
    for (uint64_t page = offset / PAGE; page < end; page++) {
        was = was && node->is_read[page];
        node->is_read[page] = 1;
    }
    return was;
}

/* With the lock. */
static void release_reads(void)
{
    view.n_released = view.n_reads;
    view.n_waiting = 0;
    (void)pthread_cond_broadcast(&view.has_released);
}

static void queue_read(const struct fuse_in_header *in, const struct fuse_read_in *asked)
{
    struct read *read = calloc(1, sizeof(*read));
    if (!read)
        fail(1, "memory");
    read->request = in->unique;
    read->file = asked->fh;
    read->offset = asked->offset;
    read->size = answer_bytes(asked->offset, asked->size);
    (void)pthread_mutex_lock(&view.lock);
    read->due_ns = now_ns() + view.delay_ns;
    read->number = ++view.n_reads;
    read->is_again = was_read(&view.nodes[in->nodeid - FUSE_ROOT_ID], read->offset, read->size);
    view.n_waiting += !read->is_again;
    if (view.first)
        view.last->next = read;
    else
        view.first = read;
    view.last = read;
    view.n_in_flight++;
    if (view.n_in_flight > view.most_in_flight)
        view.most_in_flight = view.n_in_flight;
    if (view.until && view.n_in_flight >= view.until)
        release_reads();
    (void)pthread_cond_signal(&view.has_read);
    (void)pthread_mutex_unlock(&view.lock);
}

/* With the lock. */
static bool may_be_answered(const struct read *read)
{
    if (view.until)
        return read->is_again || read->number <= view.n_released;
    return now_ns() >= read->due_ns;
}

/* The next read in the order of arrival, once it is due or released. */
static struct read *take_read(void)
{
    (void)pthread_mutex_lock(&view.lock);
    while (!view.first)
        (void)pthread_cond_wait(&view.has_read, &view.lock);
    struct read *read = view.first;
    view.first = read->next;
    struct timespec due = time_of(read->due_ns);
    while (!may_be_answered(read))
        if (view.until)
            (void)pthread_cond_wait(&view.has_released, &view.lock);
        else
            (void)pthread_cond_timedwait(&view.has_released, &view.lock, &due);
    (void)pthread_mutex_unlock(&view.lock);
    return read;
}

/* ---- A command that waits ---- */

/* Whether all threads of a process but one sleep. */
static bool all_sleep(pid_t process, pid_t but)
{
    char name[320], line[512];
    bool sleeps = true;
    (void)snprintf(name, sizeof(name), "/proc/%d/task", (int)process);
    DIR *tasks = opendir(name);
    for (struct dirent *entry; tasks && sleeps && (entry = readdir(tasks));) {
        long thread = strtol(entry->d_name, NULL, 10);
        if (thread == 0 || thread == but)
            continue;
        (void)snprintf(name, sizeof(name), "/proc/%d/task/%ld/stat", (int)process, thread);
        FILE *file = fopen(name, "re");
        const char *end = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
        sleeps = !end || end[1] != ' ' || end[2] != 'R';
        if (file)
            (void)fclose(file);
    }
    if (tasks)
        (void)closedir(tasks);
    return tasks && sleeps;
}

/* Whether the command and this program have nothing to do. */
static bool is_idle(pid_t command)
{
    struct pollfd requests = {.fd = view.device, .events = POLLIN};
    return all_sleep(command, 0) && all_sleep(getpid(), gettid()) && poll(&requests, 1, 0) == 0;
}

/* Releases reads that wait for others while the command waits for them. It may wake up meanwhile
 * to show its progress, and sleep again. */
static void *release_in_vain(void *unused)
{
    (void)unused;
    uint64_t n_looks = 0, n_seen = 0;
    for (;;) {
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        (void)pthread_mutex_lock(&view.lock);
        pid_t command = view.n_waiting ? view.command : 0;
        uint64_t n_reads = view.n_reads;
        (void)pthread_mutex_unlock(&view.lock);
        n_looks = command && n_reads == n_seen && is_idle(command) ? n_looks + 1 : 0;
        n_seen = n_reads;
        if (n_looks < N_LOOKS)
            continue;
        n_looks = 0;
        (void)pthread_mutex_lock(&view.lock);
        if (n_reads == view.n_reads) {
            view.n_in_vain += view.n_waiting;
            release_reads();
        }
        (void)pthread_mutex_unlock(&view.lock);
    }
    return NULL;
}

/* Requests wait side by side, their data pass one link one after the other. */
static void pass_link(uint64_t size, bool is_again)
{
    (void)pthread_mutex_lock(&view.lock);
    uint64_t sent = now_ns();
    view.n_bytes += size;
    view.n_first_bytes += is_again ? 0 : size;
    if (view.rate != NO_RATE) {
        sent = (sent > view.link_free_ns ? sent : view.link_free_ns) + size * 1000 / view.rate;
        view.link_free_ns = sent;
    }
    (void)pthread_mutex_unlock(&view.lock);
    struct timespec end = time_of(sent);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    (void)pthread_mutex_lock(&view.lock);
    view.n_in_flight--;
    (void)pthread_mutex_unlock(&view.lock);
}

static void flip_once(uint8_t *data, uint64_t offset, size_t size)
{
    (void)pthread_mutex_lock(&view.lock);
    if (view.flips && view.flipped >= offset && view.flipped - offset < size) {
        data[view.flipped - offset] ^= 0x80;
        view.flips = false;
    }
    (void)pthread_mutex_unlock(&view.lock);
}

static void *answer_reads(void *unused)
{
    (void)unused;
    uint8_t *buffer = malloc(LARGEST_READ);
    if (!buffer)
        fail(1, "memory");
    for (;;) {
        struct read *read = take_read();
        ssize_t got = pread((int)read->file, buffer, read->size, (off_t)read->offset);
        int error = got < 0 ? errno : 0;
        if (got > 0)
            flip_once(buffer, read->offset, (size_t)got);
        pass_link(got < 0 ? 0 : (uint64_t)got, read->is_again);
        if (error)
            reply_error(read->request, error);
        else
            reply(read->request, 0, buffer, (size_t)got);
        free(read);
    }
    return NULL;
}

static void close_file(const struct fuse_in_header *in, const struct fuse_release_in *release)
{
    (void)close((int)release->fh);
    reply_error(in->unique, 0);
}

static void close_directory(const struct fuse_in_header *in, const struct fuse_release_in *release)
{
    (void)closedir((DIR *)(uintptr_t)release->fh); // NOLINT(performance-no-int-to-ptr)
    reply_error(in->unique, 0);
}

/* ---- The filesystem ---- */

static void start_session(const struct fuse_in_header *in, const struct fuse_init_in *init)
{
    uint32_t wanted = FUSE_ASYNC_READ | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS |
                      (view.blocks ? 0 : FUSE_ASYNC_DIO);
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                .minor = FUSE_KERNEL_MINOR_VERSION,
                                .max_readahead =
                                    view.is_short ? 0 : init->max_readahead, /* 0: single pages */
                                .flags = init->flags & wanted,
                                .max_background = MOST_IN_FLIGHT,
                                .congestion_threshold = MOST_IN_FLIGHT,
                                .max_write = LARGEST_READ,
                                .time_gran = 1,
                                .max_pages = LARGEST_READ / 4096};
    reply(in->unique, 0, &out, sizeof(out));
}

static void answer(const struct fuse_in_header *in)
{
    const void *body = in + 1;
    switch (in->opcode) {
    case FUSE_INIT:
        start_session(in, body);
        return;
    case FUSE_LOOKUP:
        look_up(in, body);
        return;
    case FUSE_GETATTR:
        get_attributes(in);
        return;
    case FUSE_OPENDIR:
        open_directory(in);
        return;
    case FUSE_READDIR:
        read_directory(in, body);
        return;
    case FUSE_RELEASEDIR:
        close_directory(in, body);
        return;
    case FUSE_OPEN:
        open_file(in);
        return;
    case FUSE_READ:
        queue_read(in, body);
        return;
    case FUSE_RELEASE:
        close_file(in, body);
        return;
    case FUSE_FORGET: /* have no reply */
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    default:
        reply_error(in->unique, ENOSYS);
    }
}

static void *receive(void *unused)
{
    (void)unused;
    size_t request_bytes = LARGEST_READ + 4096; /* at least, whatever the request */
    uint8_t *request = malloc(request_bytes);
    if (!request)
        fail(1, "memory");
    for (;;) {
        ssize_t got = read(view.device, request, request_bytes);
        if (got >= (ssize_t)sizeof(struct fuse_in_header))
            answer((const struct fuse_in_header *)(void *)request);
        else if (got < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
            break; /* unmounted */
    }
    free(request);
    return NULL;
}

/* ---- The command ---- */

static void write_text(const char *path, const char *text)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    (void)!write(descriptor, text, strlen(text));
    (void)close(descriptor);
}

/* In a new namespace of users this one keeps its number. */
static void keep_id(const char *path, unsigned id)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%u %u 1", id, id);
    write_text(path, text);
}

/* A mount that no other process sees and that ends with this one. Without root, in a namespace in
 * which the user is root. */
static void mount_view(const char *path)
{
    unsigned user = getuid(), group = getgid();
    char options[128];
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            fail(CANNOT_MOUNT, "no mounts of its own");
        write_text("/proc/self/setgroups", "deny");
        keep_id("/proc/self/uid_map", user);
        keep_id("/proc/self/gid_map", group);
    }
    view.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (view.device < 0)
        fail(CANNOT_MOUNT, "/dev/fuse");
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u",
                   view.device, user, group);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("slow", path, "fuse.slow", MS_RDONLY | MS_NOSUID | MS_NODEV, options) != 0)
        fail(CANNOT_MOUNT, path);
}

static void start_threads(void)
{
    pthread_attr_t attributes;
    pthread_condattr_t clock;
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&view.has_read, &clock);
    (void)pthread_cond_init(&view.has_released, &clock);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, 256 << 10);
    int n_threads = N_RECEIVING + N_ANSWERING + (view.until > 0);
    for (int i = 0; i < n_threads; i++) {
        pthread_t thread;
        void *(*run)(void *) = i < N_RECEIVING                 ? receive
                               : i < N_RECEIVING + N_ANSWERING ? answer_reads
                                                               : release_in_vain;
        if ((errno = pthread_create(&thread, &attributes, run, NULL)) != 0)
            fail(1, "thread");
    }
    (void)pthread_attr_destroy(&attributes);
    (void)pthread_condattr_destroy(&clock);
}

static void set_read_ahead(const char *path, const char *kilobytes)
{
    struct stat st;
    char setting[64];
    if (stat(path, &st) != 0)
        fail(1, path);
    (void)snprintf(setting, sizeof(setting), "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev),
                   minor(st.st_dev));
    write_text(setting, kilobytes);
}

static int run_command(char **command)
{
    pid_t child = fork();
    if (child < 0)
        fail(1, "fork");
    if (child == 0) {
        (void)execvp(command[0], command);
        fail(127, command[0]);
    }
    (void)pthread_mutex_lock(&view.lock);
    view.command = child;
    (void)pthread_mutex_unlock(&view.lock);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_report(const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        fail(1, path);
    (void)pthread_mutex_lock(&view.lock);
    (void)fprintf(file,
                  "{\"reads\": %llu, \"in_vain\": %llu, \"bytes\": %llu, \"first_bytes\": %llu, "
                  "\"most_in_flight\": %llu}\n",
                  (unsigned long long)view.n_reads, (unsigned long long)view.n_in_vain,
                  (unsigned long long)view.n_bytes, (unsigned long long)view.n_first_bytes,
                  (unsigned long long)view.most_in_flight);
    (void)pthread_mutex_unlock(&view.lock);
    if (fclose(file) != 0)
        fail(1, path);
}

/* Only where reads return when they are answered does the kernel see a short answer as such. */
static void set_short(const char *text)
{
    view.is_short = view.blocks = true;
    view.piece = strcmp(text, "half") == 0 ? 0 : strtoull(text, NULL, 10) * 1024;
}

static void set_flip(const char *text)
{
    view.flips = true;
    view.flipped = strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    const char *report = NULL, *read_ahead = NULL;
    static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
                                            {"until", required_argument, NULL, 'u'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"read-ahead", required_argument, NULL, 'a'},
                                            {"report", required_argument, NULL, 'o'},
                                            {"blocks", no_argument, NULL, 'b'},
                                            {"short", required_argument, NULL, 's'},
                                            {"flip", required_argument, NULL, 'f'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        if (option == 'd')
            view.delay_ns = (uint64_t)(strtod(optarg, NULL) * 1e6);
        else if (option == 'u')
            view.until = strtoull(optarg, NULL, 10);
        else if (option == 'r')
            view.rate = strtoull(optarg, NULL, 10);
        else if (option == 'a')
            read_ahead = optarg;
        else if (option == 'b')
            view.blocks = true;
        else if (option == 's')
            set_short(optarg);
        else if (option == 'f')
            set_flip(optarg);
        else if (option == 'o')
            report = optarg;
        else
            return 2;
    }
    if (argc - optind < 3 || view.rate == 0) {
        (void)fputs(
            "usage: slow_mount [--delay MS] [--until N] [--rate MB] [--read-ahead KB] "
            "[--blocks] [--short KB|half] [--flip N] [--report FILE] DIRECTORY VIEW COMMAND...\n",
            stderr);
        return 2;
    }
    view.directory = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (view.directory < 0)
        fail(2, argv[optind]);
    (void)number_of(strdup(""));
    mount_view(argv[optind + 1]);
    start_threads();
    if (read_ahead)
        set_read_ahead(argv[optind + 1], read_ahead);
    int status = run_command(argv + optind + 2);
    if (report)
        write_report(report);
    return status;
}
