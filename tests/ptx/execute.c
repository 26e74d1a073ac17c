// SPDX-License-Identifier: Apache-2.0
/* execute.c - runs a grid, block by block. Threads of a block that are at the same instruction
 * execute it together; those at the lowest instruction go first, so that threads that took
 * different branches meet again. Any order is allowed: between barriers correct threads do not
 * depend on each other, and races are errors. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "phema/span.h"
#include "ptx.h"

/* Limits of all devices from compute capability 8.0 on (CUDA programming guide, table 24). */
#define MAX_THREADS      1024u
#define MAX_GRID_X       2147483647u
#define MAX_GRID_YZ      65535u
#define MAX_SHARED_BYTES ((uint64_t)48 << 10)
#define MAX_PARAM_BYTES  4096u
/* A block of our kernels executes far fewer; more is an endless loop. */
#define MAX_STEPS   ((uint64_t)1 << 24)
#define SHARED_WORD 4u /* races are found between accesses to the same word */
#define POISON      0xA5
#define ENDED       UINT32_MAX
#define SEVERAL     UINT16_MAX
#define LANE_WORDS  (MAX_THREADS / 64) /* of a bit for each thread */

/* Last accesses to a word of shared memory. A phase is the time between two barriers. */
struct shared_word {
    uint32_t write_phase, read_phase;
    uint16_t writer, reader;
    bool is_atomic; /* all writes of the phase */
};

struct block {
    const struct ptx_kernel *kernel;
    const struct ptx_launch *launch;
    uint64_t *registers;             /* [n_registers][n_threads] */
    uint64_t (*written)[LANE_WORDS]; /* [n_registers] threads that wrote a register */
    uint8_t *shared, *params;
    struct shared_word *words;
    uint32_t *next;  /* [n_threads] instruction, or ENDED */
    bool *waits;     /* [n_threads] at a barrier */
    uint16_t *lanes; /* threads that execute together, and the same as bits */
    uint64_t lane_bits[LANE_WORDS];
    size_t n_lanes, n_threads, n_words;
    uint32_t index[3];
    uint32_t phase, first_phase; /* of this block */
    uint32_t number;             /* of the launch */
    const struct ptx_allocation *last;
    uint64_t n_executed;
    struct phema_error *err;
};

static _Atomic uint64_t n_executed;
static _Atomic uint32_t n_launches;

static uint64_t *lanes_of(const struct block *block, uint16_t index)
{
    return block->registers + index * block->n_threads;
}

static enum phema_status fail_at(const struct block *block, const struct ptx_instruction *at,
                                 size_t lane)
{
    return phema_fail_in(block->err, PHEMA_BUG, "%s, line %u, block %u,%u,%u, thread %zu",
                         block->kernel->name, at->line, block->index[0], block->index[1],
                         block->index[2], lane);
}

/* ---- Memory ---- */

/* The word's bytes, or NULL after a race or a read of what nobody wrote. */
static uint8_t *access_shared(struct block *block, const struct ptx_instruction *at, uint64_t from,
                              size_t lane)
{
    bool writes = at->kind != PTX_LOAD, is_atomic = at->kind == PTX_ATOM_ADD;
    const char *problem = NULL;
    if (from + at->bytes > block->kernel->shared_bytes || from + at->bytes < from)
        problem = "outside of shared memory";
    else if (from % at->bytes)
        problem = "misaligned in shared memory";
    else if (at->bytes < SHARED_WORD)
        problem = "less than 4 bytes of shared memory, which this interpreter does not model";
    for (uint64_t i = from / SHARED_WORD; !problem && i < (from + at->bytes) / SHARED_WORD; i++) {
        struct shared_word *word = &block->words[i];
        bool is_written = word->write_phase == block->phase && word->writer != lane;
        bool is_read = word->read_phase == block->phase && word->reader != lane;
        if (is_written && !(is_atomic && word->is_atomic))
            problem = "a race in shared memory: another thread wrote since the last barrier";
        else if (writes && is_read)
            problem = "a race in shared memory: another thread read since the last barrier";
        else if ((!writes || is_atomic) && word->write_phase < block->first_phase)
            problem = "reads shared memory that nobody wrote";
        if (writes) {
            word->is_atomic = is_atomic && (word->write_phase != block->phase || word->is_atomic);
            word->writer = (uint16_t)(is_written ? SEVERAL : lane);
            word->write_phase = block->phase;
        } else {
            word->reader = (uint16_t)(is_read ? SEVERAL : lane);
            word->read_phase = block->phase;
        }
    }
    if (!problem)
        return block->shared + from;
    (void)phema_fail(block->err, PHEMA_BUG, "%u bytes at %llu: %s", at->bytes,
                     (unsigned long long)from, problem);
    return NULL;
}

static uint8_t *access_memory(struct block *block, const struct ptx_instruction *at, uint64_t from,
                              size_t lane)
{
    struct ptx_access access = {from, at->bytes, block->number, block->launch->device,
                                at->kind == PTX_STORE};
    if (at->space == PTX_SHARED)
        return access_shared(block, at, from, lane);
    if (at->space == PTX_GLOBAL)
        return ptx_access(&access, &block->last, block->err);
    if (from % at->bytes == 0 && from < block->kernel->params_size &&
        from + at->bytes <= block->kernel->params_size)
        return block->params + from;
    (void)phema_fail(block->err, PHEMA_BUG, "reads %u bytes at %llu of the parameters", at->bytes,
                     (unsigned long long)from);
    return NULL;
}

static PHEMA_FALLIBLE access_lanes(struct block *block, const struct ptx_instruction *at,
                                   const uint16_t *lanes, size_t n)
{
    const uint64_t *addresses = lanes_of(block, at->sources[0]);
    const uint64_t *added = lanes_of(block, at->sources[1]);
    for (size_t i = 0; i < n; i++) {
        size_t lane = lanes[i];
        uint64_t from = addresses[lane] + (uint64_t)at->offset;
        if (from % ((uint64_t)at->bytes * at->n_elements)) {
            (void)phema_fail(block->err, PHEMA_BUG, "a misaligned vector at %#llx",
                             (unsigned long long)from);
            return fail_at(block, at, lane);
        }
        for (size_t e = 0; e < at->n_elements; e++) {
            uint64_t *value = &lanes_of(block, at->d[e])[lane];
            uint8_t *memory = access_memory(block, at, from + e * at->bytes, lane);
            uint64_t bits = 0;
            uint32_t sum;
            if (!memory)
                return fail_at(block, at, lane);
            switch (at->kind) {
            case PTX_STORE:
                memcpy(memory, value, at->bytes);
                break;
            case PTX_LOAD:
                memcpy(&bits, memory, at->bytes);
                *value = bits;
                break;
            default:
                memcpy(&sum, memory, sizeof(sum));
                *value = sum;
                sum += (uint32_t)added[lane];
                memcpy(memory, &sum, sizeof(sum));
            }
        }
    }
    return PHEMA_OK;
}

/* ---- Threads ---- */

/* Collects the threads at the lowest instruction, and returns it, or ENDED where all wait or have
 * ended. *until: the next instruction at which a thread is. */
static uint32_t gather(struct block *block, uint32_t *until)
{
    uint32_t lowest = ENDED, second = ENDED;
    for (size_t t = 0; t < block->n_threads; t++) {
        uint32_t at = block->waits[t] ? ENDED : block->next[t];
        if (at < lowest) {
            second = lowest;
            lowest = at;
        } else if (at > lowest && at < second) {
            second = at;
        }
    }
    block->n_lanes = 0;
    memset(block->lane_bits, 0, sizeof(block->lane_bits));
    for (size_t t = 0; t < block->n_threads && lowest != ENDED; t++) {
        if (block->waits[t] || block->next[t] != lowest)
            continue;
        block->lanes[block->n_lanes++] = (uint16_t)t;
        block->lane_bits[t / 64] |= (uint64_t)1 << t % 64;
    }
    *until = second;
    return lowest;
}

static void move_lanes(const struct block *block, uint32_t to)
{
    for (size_t i = 0; i < block->n_lanes; i++)
        block->next[block->lanes[i]] = to;
}

/* A register has a value in each of these threads. */
static PHEMA_FALLIBLE check_written(const struct block *block, const struct ptx_instruction *at,
                                    uint16_t index, const uint64_t *bits)
{
    for (size_t w = 0; w < block->n_words; w++) {
        uint64_t missing = bits[w] & ~block->written[index][w];
        if (missing) {
            (void)phema_fail(block->err, PHEMA_BUG, "reads a register that nobody wrote");
            return fail_at(block, at, w * 64 + (size_t)__builtin_ctzll(missing));
        }
    }
    return PHEMA_OK;
}

/* Where all threads of the group go, or ENDED where they part. */
static uint32_t branch(const struct block *block, const struct ptx_instruction *at, uint32_t here)
{
    if (at->guard == PTX_NO_REGISTER)
        return at->target;
    const uint64_t *guard = lanes_of(block, at->guard);
    size_t n_taken = 0;
    for (size_t i = 0; i < block->n_lanes; i++) {
        size_t lane = block->lanes[i];
        bool is_taken = (guard[lane] != 0) != at->guard_is_negated;
        n_taken += is_taken;
        block->next[lane] = is_taken ? at->target : here + 1;
    }
    return n_taken == 0 ? here + 1 : n_taken == block->n_lanes ? at->target : ENDED;
}

/* The lanes whose guard holds, and the same as bits. */
static size_t guarded_lanes(const struct block *block, const struct ptx_instruction *at,
                            uint16_t *lanes, uint64_t *bits)
{
    const uint64_t *guard = lanes_of(block, at->guard);
    size_t n = 0;
    memset(bits, 0, LANE_WORDS * sizeof(*bits));
    for (size_t i = 0; i < block->n_lanes; i++) {
        uint16_t lane = block->lanes[i];
        if ((guard[lane] != 0) == at->guard_is_negated)
            continue;
        lanes[n++] = lane;
        bits[lane / 64] |= (uint64_t)1 << lane % 64;
    }
    return n;
}

static PHEMA_FALLIBLE compute(struct block *block, const struct ptx_instruction *at)
{
    uint16_t some[MAX_THREADS];
    uint64_t some_bits[LANE_WORDS];
    const uint16_t *lanes = block->lanes;
    const uint64_t *bits = block->lane_bits;
    size_t n = block->n_lanes;
    enum phema_status status = PHEMA_OK;
    if (at->guard != PTX_NO_REGISTER) {
        n = guarded_lanes(block, at, some, some_bits);
        lanes = some;
        bits = some_bits;
    }
    block->n_executed += n;
    for (size_t i = 0; i < at->n_sources && !status; i++)
        status = check_written(block, at, at->sources[i], bits);
    for (size_t i = 0; i < at->n_elements && !status; i++) {
        if (at->kind == PTX_STORE)
            status = check_written(block, at, at->d[i], bits);
        for (size_t w = 0; w < block->n_words; w++)
            block->written[at->d[i]][w] |= bits[w];
    }
    if (status || at->kind != PTX_COMPUTE)
        return status ? status : access_lanes(block, at, lanes, n);
    at->compute(lanes_of(block, at->d[0]), lanes_of(block, at->sources[0]),
                lanes_of(block, at->sources[1]), lanes_of(block, at->sources[2]),
                n == block->n_threads ? NULL : lanes, n);
    return PHEMA_OK;
}

/* All running threads wait at a barrier, or have ended. */
static PHEMA_FALLIBLE leave_barrier(struct block *block, bool *is_done)
{
    size_t first = block->n_threads;
    for (size_t t = 0; t < block->n_threads; t++)
        if (block->waits[t] && first == block->n_threads)
            first = t;
    *is_done = first == block->n_threads;
    for (size_t t = 0; t < block->n_threads && !*is_done; t++) {
        if (block->next[t] != block->next[first]) {
            const struct ptx_instruction *at = &block->kernel->code[block->next[first] - 1];
            (void)phema_fail(block->err, PHEMA_BUG, "waits at a barrier, and thread %zu %s", t,
                             block->next[t] == ENDED ? "has ended" : "waits at another one");
            return fail_at(block, at, first);
        }
    }
    for (size_t t = 0; t < block->n_threads; t++)
        block->waits[t] = false;
    block->phase++;
    return PHEMA_OK;
}

/* Runs a group of threads from `at` on until its threads part, wait, end or meet others. */
static PHEMA_FALLIBLE run_group(struct block *block, uint32_t at, uint32_t until, uint64_t *n_steps)
{
    const struct ptx_instruction *code = block->kernel->code;
    for (uint32_t begin = at; at < until || at == begin; ++*n_steps) {
        const struct ptx_instruction *instruction = &code[at];
        if (*n_steps > MAX_STEPS) {
            (void)phema_fail(block->err, PHEMA_BUG, "does not end");
            return fail_at(block, instruction, block->lanes[0]);
        }
        enum phema_status status = PHEMA_OK;
        if (instruction->guard != PTX_NO_REGISTER)
            status = check_written(block, instruction, instruction->guard, block->lane_bits);
        if (status)
            return status;
        switch (instruction->kind) {
        case PTX_BRANCH:
            block->n_executed += block->n_lanes;
            at = branch(block, instruction, at);
            if (at == ENDED)
                return PHEMA_OK;
            if (at <= begin) { /* backwards: threads may wait before this one */
                move_lanes(block, at);
                return PHEMA_OK;
            }
            break;
        case PTX_BARRIER:
        case PTX_END:
            if (instruction->guard != PTX_NO_REGISTER) {
                (void)phema_fail(block->err, PHEMA_BUG, "a guarded barrier or end is not modelled");
                return fail_at(block, instruction, block->lanes[0]);
            }
            for (size_t i = 0; i < block->n_lanes; i++)
                block->waits[block->lanes[i]] = instruction->kind == PTX_BARRIER;
            move_lanes(block, instruction->kind == PTX_BARRIER ? at + 1 : ENDED);
            return PHEMA_OK;
        default:
            status = compute(block, instruction);
            if (status)
                return status;
            at++;
        }
    }
    move_lanes(block, at);
    return PHEMA_OK;
}

static PHEMA_FALLIBLE run_block(struct block *block)
{
    const uint32_t *size = block->launch->block, *grid = block->launch->grid;
    for (size_t t = 0; t < block->n_threads; t++) {
        const uint32_t special[PTX_N_SPECIAL] = {(uint32_t)t % size[0],
                                                 (uint32_t)t / size[0] % size[1],
                                                 (uint32_t)t / size[0] / size[1],
                                                 size[0],
                                                 size[1],
                                                 size[2],
                                                 block->index[0],
                                                 block->index[1],
                                                 block->index[2],
                                                 grid[0],
                                                 grid[1],
                                                 grid[2]};
        for (uint16_t i = 0; i < PTX_N_SPECIAL; i++)
            lanes_of(block, i)[t] = special[i];
        block->next[t] = 0;
        block->waits[t] = false;
    }
    block->first_phase = ++block->phase;
    memset(block->written[PTX_N_SPECIAL], 0, block->kernel->n_declared * sizeof(*block->written));
    memset(block->shared, POISON, block->kernel->shared_bytes);
    uint64_t n_steps = 0;
    bool is_done = false;
    enum phema_status status = PHEMA_OK;
    while (!status && !is_done) {
        uint32_t until, at = gather(block, &until);
        status =
            at == ENDED ? leave_barrier(block, &is_done) : run_group(block, at, until, &n_steps);
    }
    return status;
}

/* ---- Launches ---- */

static PHEMA_FALLIBLE check_limits(const struct ptx_kernel *kernel, const struct ptx_launch *launch,
                                   struct phema_error *err)
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    uint64_t n_threads = (uint64_t)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > MAX_GRID_X || grid[1] > MAX_GRID_YZ ||
        grid[2] > MAX_GRID_YZ)
        return phema_fail(err, PHEMA_BUG, "%s: a grid of %u x %u x %u blocks", kernel->name,
                          grid[0], grid[1], grid[2]);
    if (!n_threads || n_threads > MAX_THREADS || block[2] > 64 ||
        (kernel->max_threads && n_threads > kernel->max_threads))
        return phema_fail(err, PHEMA_BUG, "%s: blocks of %u x %u x %u threads", kernel->name,
                          block[0], block[1], block[2]);
    if (kernel->shared_bytes > MAX_SHARED_BYTES || kernel->params_size > MAX_PARAM_BYTES)
        return phema_fail(err, PHEMA_BUG, "%s: %llu bytes of shared memory, %llu of parameters",
                          kernel->name, (unsigned long long)kernel->shared_bytes,
                          (unsigned long long)kernel->params_size);
    return PHEMA_OK;
}

static PHEMA_FALLIBLE run_grid(struct block *block)
{
    const struct ptx_launch *launch = block->launch;
    uint32_t *index = block->index;
    enum phema_status status = PHEMA_OK;
    for (index[2] = 0; index[2] < launch->grid[2]; index[2]++)
        for (index[1] = 0; index[1] < launch->grid[1]; index[1]++)
            for (index[0] = 0; index[0] < launch->grid[0] && !status; index[0]++)
                status = run_block(block);
    return status;
}

static PHEMA_FALLIBLE run_kernel(const struct ptx_kernel *kernel, const struct ptx_launch *launch,
                                 struct phema_error *err)
{
    size_t n_threads = (size_t)launch->block[0] * launch->block[1] * launch->block[2];
    struct block block = {
        .kernel = kernel,
        .launch = launch,
        .n_threads = n_threads,
        .n_words = (n_threads + 63) / 64,
        .number = 2 + atomic_fetch_add(&n_launches, 1),
        .registers = malloc(kernel->n_registers * n_threads * sizeof(uint64_t)),
        .written = malloc(kernel->n_registers * sizeof(*block.written)),
        .shared = malloc(kernel->shared_bytes + SHARED_WORD),
        .params = launch->arguments,
        .words = calloc(kernel->shared_bytes / SHARED_WORD + 1, sizeof(struct shared_word)),
        .next = calloc(n_threads, sizeof(uint32_t)),
        .waits = calloc(n_threads, sizeof(bool)),
        .lanes = calloc(n_threads, sizeof(uint16_t)),
        .err = err};
    bool has_memory = block.registers && block.written && block.shared && block.words &&
                      block.next && block.waits && block.lanes;
    enum phema_status status = has_memory ? PHEMA_OK : phema_fail_memory(err);
    if (has_memory) {
        memset(block.written, 0xff, kernel->n_registers * sizeof(*block.written));
        for (size_t i = 0; i < kernel->n_constants; i++)
            for (size_t t = 0; t < n_threads; t++)
                lanes_of(&block, (uint16_t)(PTX_N_SPECIAL + kernel->n_declared + i))[t] =
                    kernel->constants[i];
        ptx_memory_hold();
        status = run_grid(&block);
        ptx_memory_release();
    }
    atomic_fetch_add(&n_executed, block.n_executed);
    free(block.registers);
    free(block.written);
    free(block.shared);
    free(block.words);
    free(block.next);
    free(block.waits);
    free(block.lanes);
    return status;
}

static const struct ptx_kernel *find_kernel(const struct ptx_module *module, const char *name,
                                            struct phema_error *err)
{
    for (size_t i = 0; i < module->n_kernels; i++)
        if (strcmp(module->kernels[i].name, name) == 0)
            return &module->kernels[i];
    (void)phema_fail(err, PHEMA_BUG, "no kernel %s", name);
    return NULL;
}

enum phema_status ptx_pack_arguments(uint8_t **out, const struct ptx_module *module,
                                     const char *kernel_name, void *const *arguments,
                                     struct phema_error *err)
{
    const struct ptx_kernel *kernel = find_kernel(module, kernel_name, err);
    if (!kernel)
        return PHEMA_BUG;
    uint8_t *packed = calloc(1, kernel->params_size + 1);
    if (!packed)
        return phema_fail_memory(err);
    for (size_t i = 0; i < kernel->n_params; i++)
        memcpy(packed + kernel->param_offsets[i], arguments[i], kernel->param_bytes[i]);
    *out = packed;
    return PHEMA_OK;
}

enum phema_status ptx_launch(const struct ptx_module *module, const struct ptx_launch *launch,
                             struct phema_error *err)
{
    const struct ptx_kernel *kernel = find_kernel(module, launch->kernel, err);
    if (!kernel)
        return PHEMA_BUG;
    enum phema_status status = check_limits(kernel, launch, err);
    return status ? status : run_kernel(kernel, launch, err);
}

uint64_t ptx_executed(void)
{
    return atomic_load(&n_executed);
}
