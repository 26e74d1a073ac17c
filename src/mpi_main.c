// SPDX-License-Identifier: Apache-2.0
/* mpi_main.c - posthoc-ema-mpi: the command line as a team of MPI processes. Runs of the output are
 * handed out by a counter of rank 0. Nothing is sent while tensors are summed. Who waits sleeps,
 * since MPICH would spin. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "phema/cli.h"
#include "phema/memory.h"

#define FIRST_PAUSE_NS   20000
#define LONGEST_PAUSE_NS 2000000
#define NO_RUN           ((uint64_t)1 << 62)
#define PIECE_BYTES      ((size_t)64 << 20)

struct mpi_team {
    MPI_Comm comm;
    MPI_Win window;
    int rank, size;
    /* of exchange */
    bool is_in_round;
    MPI_Request round;
    uint64_t given[PHEMA_TEAM_VALUES], received[PHEMA_TEAM_VALUES];
};

/* Sleeps until the request is complete, a quarter of the time longer than needed at most. Errors of
 * MPI end all processes: MPI_ERRORS_ARE_FATAL is the default. */
static void sleep_until_done(MPI_Request *request)
{
    int is_done = 0;
    struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};
    while (!MPI_Request_get_status(*request, &is_done, MPI_STATUS_IGNORE) && !is_done) {
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_PAUSE_NS)
            pause.tv_nsec += pause.tv_nsec / 4;
    }
}

/* Adds to the counter, and returns what it was. */
static uint64_t add_to_counter(struct mpi_team *team, uint64_t value)
{
    uint64_t before = NO_RUN;
    (void)MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, 0, 0, MPI_SUM, team->window);
    (void)MPI_Win_flush(0, team->window);
    return before;
}

static uint64_t next_run(void *context)
{
    return add_to_counter(context, 1);
}

static void stop(void *context)
{
    (void)add_to_counter(context, NO_RUN);
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): a later call may complete the round
/* Testing also lets rank 0 serve the counter where the network cannot. */
static bool exchange(void *context, const uint64_t values[PHEMA_TEAM_VALUES],
                     uint64_t sums[PHEMA_TEAM_VALUES], bool waits)
{
    struct mpi_team *team = context;
    if (!team->is_in_round) {
        memcpy(team->given, values, sizeof(team->given));
        (void)MPI_Iallreduce(team->given, team->received, PHEMA_TEAM_VALUES, MPI_UINT64_T, MPI_SUM,
                             team->comm, &team->round);
        team->is_in_round = true;
    }
    if (waits)
        sleep_until_done(&team->round);
    int is_done = 0;
    (void)MPI_Test(&team->round, &is_done, MPI_STATUS_IGNORE);
    if (!is_done)
        return false;
    team->is_in_round = false;
    memcpy(sums, team->received, sizeof(team->received));
    return true;
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

/* *first: the first process that has failed, or the size of the team. Returns whether all have. */
static bool find_failed(int *first, const struct mpi_team *team, bool has_failed)
{
    const int values[] = {has_failed ? team->rank : team->size, has_failed};
    int least[] = {team->size, 0};
    MPI_Request request;
    (void)MPI_Iallreduce(values, least, 2, MPI_INT, MPI_MIN, team->comm, &request);
    sleep_until_done(&request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    *first = least[0];
    return least[1];
}

static void name_process(const struct mpi_team *team, enum phema_status status,
                         struct phema_error *err)
{
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int size = 0;
    (void)MPI_Get_processor_name(host, &size);
    (void)phema_fail_in(err, status, "process %d of %d on %s", team->rank + 1, team->size, host);
}

struct verdict {
    int status;
    struct phema_error err;
};

static enum phema_status agree(void *context, enum phema_status status, struct phema_error *err)
{
    const struct mpi_team *team = context;
    int failed = 0;
    bool have_all = find_failed(&failed, team, status != PHEMA_OK);
    if (failed == team->size)
        return PHEMA_OK;
    if (failed == team->rank && !have_all)
        name_process(team, status, err);
    struct verdict verdict = {.status = (int)status, .err = *err};
    MPI_Request request;
    (void)MPI_Ibcast(&verdict, (int)sizeof(verdict), MPI_BYTE, failed, team->comm, &request);
    sleep_until_done(&request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    *err = verdict.err;
    return (enum phema_status)verdict.status;
}

/* In pieces, since MPI counts in int. */
static void broadcast(void *context, void *data, size_t size)
{
    const struct mpi_team *team = context;
    for (size_t at = 0; at < size; at += PIECE_BYTES) {
        size_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        MPI_Request request;
        (void)MPI_Ibcast((char *)data + at, (int)piece, MPI_BYTE, 0, team->comm, &request);
        sleep_until_done(&request);
        (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* In pieces, as above. */
static void sum(void *context, uint64_t *values, size_t n)
{
    const struct mpi_team *team = context;
    size_t most = PIECE_BYTES / sizeof(*values);
    for (size_t at = 0; at < n; at += most) {
        MPI_Request request;
        (void)MPI_Iallreduce(MPI_IN_PLACE, values + at, (int)(n - at < most ? n - at : most),
                             MPI_UINT64_T, MPI_SUM, team->comm, &request);
        sleep_until_done(&request);
        (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void find_neighbours(int *rank, int *size, const struct mpi_team *team)
{
    MPI_Comm machine = MPI_COMM_NULL;
    (void)MPI_Comm_split_type(team->comm, MPI_COMM_TYPE_SHARED, team->rank, MPI_INFO_NULL,
                              &machine);
    (void)MPI_Comm_rank(machine, rank);
    (void)MPI_Comm_size(machine, size);
    (void)MPI_Comm_free(&machine);
}

static int run(struct mpi_team *mpi, int argc, char **argv)
{
    uint64_t *counter = NULL;
    MPI_Aint size_bytes = mpi->rank == 0 ? (MPI_Aint)sizeof(*counter) : 0;
    (void)MPI_Win_allocate(size_bytes, (int)sizeof(*counter), MPI_INFO_NULL, mpi->comm, &counter,
                           &mpi->window);
    (void)MPI_Win_lock_all(MPI_MODE_NOCHECK, mpi->window);
    if (mpi->rank == 0)
        *counter = 0;
    (void)MPI_Win_sync(mpi->window);
    (void)MPI_Barrier(mpi->comm);
    int local_rank = 0, local_size = 1;
    find_neighbours(&local_rank, &local_size, mpi);
    const struct phema_team team = {.rank = (unsigned)mpi->rank,
                                    .size = (unsigned)mpi->size,
                                    .local_rank = (unsigned)local_rank,
                                    .local_size = (unsigned)local_size,
                                    .context = mpi,
                                    .next_run = next_run,
                                    .stop = stop,
                                    .exchange = exchange,
                                    .agree = agree,
                                    .broadcast = broadcast,
                                    .sum = sum};
    int status = phema_cli_main_in_team(argc, argv, &team);
    (void)MPI_Win_unlock_all(mpi->window);
    (void)MPI_Win_free(&mpi->window);
    return status;
}

/* Values that are set already stay. */
static void set_up_open_mpi(void)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    const char *local_size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    /* Debian's configuration of Open MPI leaves out pt2pt, the module of windows that works between
     * machines with nothing but TCP. This takes the place of that setting. */
    (void)setenv("OMPI_MCA_osc", "^ucx", 0);
    /* All processes are on one machine, which needs no network: looking for one takes 0.2 s. */
    if (size && local_size && strcmp(size, local_size) == 0)
        (void)setenv("OMPI_MCA_pml", "ob1", 0);
}

int main(int argc, char **argv)
{
    struct mpi_team team = {.comm = MPI_COMM_WORLD, .round = MPI_REQUEST_NULL};
    int provided = 0;
    phema_memory_return_freed();
    set_up_open_mpi();
    (void)MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    (void)MPI_Comm_rank(team.comm, &team.rank);
    (void)MPI_Comm_size(team.comm, &team.size);
    int status = 0;
    if (provided < MPI_THREAD_FUNNELED) {
        if (team.rank == 0)
            (void)fprintf(stderr, "posthoc-ema: this MPI library does not allow threads "
                                  "(MPI_THREAD_FUNNELED)\n");
        status = PHEMA_ERR_RESOURCE;
    } else {
        status = run(&team, argc, argv);
    }
    (void)MPI_Finalize();
    return status;
}
