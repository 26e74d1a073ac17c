// SPDX-License-Identifier: Apache-2.0
/* test_join_check.c - blocks are dealt to processes, and threads that stand for the processes of a
 * team compare them. */
#include "join_check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* ---- Who compares ---- */

static const struct phema_team hosts = {.size = 4, .local_size = 2};
static const struct phema_team machine = {.size = 4, .local_size = 4};

static struct phema_writer_check_block block_of(uint32_t first, uint32_t last)
{
    return (struct phema_writer_check_block){.first_part = first, .last_part = last};
}

/* Where the maker is known, each of the other three compares a third. */
static void another_process_than_the_maker_compares(void **state)
{
    (void)state;
    uint64_t makers[] = {1, 3, 0, 4};
    const struct join_check check = {.team = &hosts, .makers = makers, .n_makers = 4};
    for (uint32_t part = 1; part <= 4; part++) {
        struct phema_writer_check_block block = block_of(part, part);
        unsigned n_of[4] = {0};
        for (size_t number = 0; number < 12; number++) {
            uint32_t reader = join_check_reader(&check, &block, number);
            assert_in_range(reader, 0, 3);
            n_of[reader]++;
        }
        for (unsigned rank = 0; rank < 4; rank++) {
            uint64_t maker = makers[part - 1];
            assert_int_equal(n_of[rank], !maker ? 3 : maker == rank + 1 ? 0 : 4);
        }
    }
}

static void one_machine_rereads_what_was_there_before_alone(void **state)
{
    (void)state;
    uint64_t makers[] = {1, 3, 0, 4};
    const struct {
        uint32_t first, last;
        bool is_compared;
    } cases[] = {{1, 1, false}, {1, 2, false}, {2, 3, true}, {3, 3, true},
                 {2, 4, true},  {4, 4, false}, {4, 5, true}, {0, 0, true}};
    struct join_check check = {.team = &machine, .makers = makers, .n_makers = 4};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_writer_check_block block = block_of(cases[i].first, cases[i].last);
        assert_int_equal(join_check_reader(&check, &block, i) != PHEMA_CHECK_NOT,
                         cases[i].is_compared);
        check.team = NULL; /* the verb join knows nothing of them */
        assert_int_equal(join_check_reader(&check, &block, i), 0);
        check.team = &machine;
    }
}

/* ---- A team ---- */

enum { SIZE = 3, BLOCK = 4096, N_BLOCKS = 12, N_PARTS = 2 };

struct shared {
    pthread_barrier_t barrier;
    const void *data; /* of rank 0 */
    uint64_t sums[N_BLOCKS];
    enum phema_status statuses[SIZE];
    struct phema_error errors[SIZE];
};

struct process {
    struct shared *shared;
    struct phema_team team;
    unsigned n_calls;
    enum phema_status status;
    struct phema_error err;
};

static void meet(struct process *process)
{
    process->n_calls++;
    (void)pthread_barrier_wait(&process->shared->barrier);
}

static void broadcast(void *context, void *data, size_t size)
{
    struct process *process = context;
    if (process->team.rank == 0)
        process->shared->data = data;
    meet(process);
    if (process->team.rank > 0)
        memcpy(data, process->shared->data, size);
    meet(process);
}

static void sum(void *context, uint64_t *values, size_t n)
{
    struct process *process = context;
    struct shared *shared = process->shared;
    assert_true(n <= N_BLOCKS);
    if (process->team.rank == 0)
        memset(shared->sums, 0, sizeof(shared->sums));
    for (unsigned rank = 0; rank < SIZE; rank++) {
        meet(process);
        for (size_t i = 0; i < n && rank == process->team.rank; i++)
            shared->sums[i] += values[i];
    }
    meet(process);
    memcpy(values, shared->sums, n * sizeof(*values));
    meet(process);
}

static enum phema_status agree(void *context, enum phema_status status, struct phema_error *err)
{
    struct process *process = context;
    struct shared *shared = process->shared;
    shared->statuses[process->team.rank] = status;
    shared->errors[process->team.rank] = *err;
    meet(process);
    unsigned rank = 0;
    while (rank + 1 < SIZE && !shared->statuses[rank])
        rank++;
    status = shared->statuses[rank];
    if (status)
        *err = shared->errors[rank];
    meet(process);
    return status;
}

static void *follow(void *argument)
{
    struct process *process = argument;
    struct join_check check = {.team = &process->team};
    process->status = join_check_follow(&check, &process->err);
    return NULL;
}

/* Rank 0 compares a list, or NULL: it has none. All have made the same calls. */
static void compare_in_team(struct process processes[SIZE], const struct phema_join_list *list)
{
    struct shared shared = {.data = NULL};
    pthread_t threads[SIZE];
    assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, SIZE), 0);
    for (unsigned rank = 0; rank < SIZE; rank++)
        processes[rank] = (struct process){.shared = &shared,
                                           .team = {.rank = rank,
                                                    .size = SIZE,
                                                    .local_size = 1,
                                                    .context = &processes[rank],
                                                    .agree = agree,
                                                    .broadcast = broadcast,
                                                    .sum = sum}};
    for (unsigned rank = 1; rank < SIZE; rank++)
        assert_int_equal(pthread_create(&threads[rank], NULL, follow, &processes[rank]), 0);
    uint64_t makers[N_PARTS] = {1, 0}; /* rank 0 has made the first half */
    struct join_check check = {.team = &processes[0].team, .makers = makers, .n_makers = N_PARTS};
    if (list)
        processes[0].status = join_check_list(&check, list, &processes[0].err);
    join_check_end(&check);
    for (unsigned rank = 1; rank < SIZE; rank++) {
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
        assert_int_equal(processes[rank].n_calls, processes[0].n_calls);
    }
    assert_int_equal(pthread_barrier_destroy(&shared.barrier), 0);
}

static void write_part(const char *path, uint64_t part)
{
    struct phema_error err = {0};
    static const struct phema_writer_part_file file = {NULL, (uint64_t)N_BLOCKS * BLOCK};
    const struct phema_writer_part_options options = {.part = part,
                                                      .n_parts = N_PARTS,
                                                      .digest = "0123456789abcdef",
                                                      .files = &file,
                                                      .n_files = 1};
    struct phema_writer_part *opened = NULL;
    struct phema_writer *writer = NULL;
    uint8_t data[N_BLOCKS * BLOCK / N_PARTS];
    memset(data, 'a' + (int)part, sizeof(data));
    assert_ok(phema_writer_part_open(&opened, path, &options, &err), &err);
    assert_ok(phema_writer_part_file(&writer, opened, 0, &err), &err);
    assert_ok(phema_writer_write(writer, (part - 1) * sizeof(data), data, sizeof(data), &err),
              &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    assert_ok(phema_writer_part_finish(opened, &err), &err);
}

static void put(const char *partial, size_t block, char byte)
{
    int descriptor = open(partial, O_WRONLY);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, &byte, 1, (off_t)(block * BLOCK + 5)), 1);
    assert_int_equal(close(descriptor), 0);
}

static void a_team_finds_each_block_that_differs(void **state)
{
    (void)state;
    struct process processes[SIZE];
    struct phema_join_list list = {0};
    struct phema_error err = {0};
    const struct phema_writer_options options = {.replaces = false};
    char *path = support_tmp_path("team"), partial[4096];
    (void)snprintf(partial, sizeof(partial), "%s.partial", path);
    for (uint64_t part = 1; part <= N_PARTS; part++)
        write_part(path, part);
    assert_ok(phema_join_add(&list, path, &options, &err), &err);
    compare_in_team(processes, &list);
    assert_ok(processes[0].status, &processes[0].err);
    for (size_t b = 0; b < N_BLOCKS; b++) {
        char wanted[64];
        (void)snprintf(wanted, sizeof(wanted), "bytes %zu to %zu are not what part %d", b * BLOCK,
                       (b + 1) * BLOCK, b < N_BLOCKS / 2 ? 1 : 2);
        put(partial, b, 'x');
        compare_in_team(processes, &list);
        assert_fails(processes[0].status, PHEMA_ERR_OUTPUT, &processes[0].err, wanted);
        for (unsigned rank = 1; rank < SIZE; rank++) /* the message is that of rank 0 */
            assert_ok(processes[rank].status, &processes[rank].err);
        put(partial, b, b < N_BLOCKS / 2 ? 'b' : 'c');
    }
    /* the others find no file, while rank 0 has it open */
    assert_int_equal(unlink(partial), 0);
    compare_in_team(processes, &list);
    for (unsigned rank = 0; rank < SIZE; rank++)
        assert_fails(processes[rank].status, PHEMA_ERR_OUTPUT, &processes[rank].err,
                     "No such file");
    phema_join_clear(&list);
    free(path);
}

static void a_team_is_told_that_there_is_nothing(void **state)
{
    (void)state;
    struct process processes[SIZE];
    const struct phema_join_list none = {0};
    const struct phema_join_list *const lists[] = {NULL, &none};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        compare_in_team(processes, lists[i]);
        for (unsigned rank = 0; rank < SIZE; rank++)
            assert_ok(processes[rank].status, &processes[rank].err);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_process_than_the_maker_compares),
    cmocka_unit_test(one_machine_rereads_what_was_there_before_alone),
    cmocka_unit_test(a_team_finds_each_block_that_differs),
    cmocka_unit_test(a_team_is_told_that_there_is_nothing),
};
TEST_GROUP(tests)
