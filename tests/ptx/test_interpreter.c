// SPDX-License-Identifier: Apache-2.0
/* test_interpreter.c - small kernels by hand: the interpreter executes them as a device does, and
 * finds each kind of mistake. Needs no toolkit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "ptx.h"
#include "support.h"

#define N_THREADS 64u
#define N_BYTES   ((uint64_t)N_THREADS * 4)

/* A kernel k(uint32_t *in, uint32_t *out) with 256 bytes of shared memory; %rd1, %rd2 are the
 * arguments, %rd3 and %rd4 the addresses of the thread's numbers, %r1 the thread, %r2 its place in
 * shared memory. */
#define HEAD                                                                                       \
    ".version 9.0\n.target sm_80\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 k_in, .param .u64 k_out)\n.maxntid 64, 1, 1\n{\n"               \
    ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<19>;\n.reg .b64 %rd<19>;\n"                \
    ".reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n.shared .align 4 .b8 shared[256];\n"                     \
    "ld.param.u64 %rd1, [k_in];\nld.param.u64 %rd2, [k_out];\nmov.u32 %r1, %tid.x;\n"              \
    "mul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd3, %rd1, %rd5;\nadd.s64 %rd4, %rd2, %rd5;\n"           \
    "shl.b32 %r2, %r1, 2;\nmov.u32 %r3, shared;\nadd.s32 %r2, %r3, %r2;\n"
#define TAIL "ret;\n}\n"

struct memory {
    uint8_t *in, *out; /* on device 0, of N_THREADS numbers */
};

static int open_memory(void **state)
{
    static struct memory memory;
    struct phema_error err = {0};
    uint8_t *view;
    assert_ok(ptx_alloc(&memory.in, 0, N_BYTES, &err), &err);
    assert_ok(ptx_alloc(&memory.out, 0, N_BYTES, &err), &err);
    assert_ok(ptx_view(&view, 0, memory.in, N_BYTES, false, &err), &err);
    for (uint32_t i = 0; i < N_THREADS; i++)
        memcpy(view + (size_t)4 * i, &(uint32_t){1000 + i}, 4);
    ptx_mark_written(memory.in, N_BYTES);
    *state = &memory;
    return 0;
}

static int close_memory(void **state)
{
    struct memory *memory = *state;
    struct phema_error err = {0};
    assert_ok(ptx_free(memory->in, &err), &err);
    assert_ok(ptx_free(memory->out, &err), &err);
    assert_int_equal(ptx_free(memory->in, &err), PHEMA_BUG); /* not twice */
    return 0;
}

static enum phema_status launch(const struct memory *memory, const char *text,
                                const struct ptx_launch *given, struct phema_error *err)
{
    struct ptx_module *module = NULL;
    enum phema_status status = ptx_module_parse(&module, text, err);
    if (status)
        return status;
    struct ptx_launch launch = *given;
    uint8_t *packed = NULL;
    uint8_t *in = memory->in, *out = memory->out;
    void *const arguments[] = {&in, &out};
    status = ptx_pack_arguments(&packed, module, "k", arguments, err);
    launch.kernel = "k";
    launch.arguments = packed;
    if (!status)
        status = ptx_launch(module, &launch, err);
    free(packed);
    ptx_module_free(module);
    return status;
}

static const struct ptx_launch one_block = {.grid = {1, 1, 1}, .block = {N_THREADS, 1, 1}};

static void assert_found_in(void **state, const char *text, const struct ptx_launch *given,
                            const char *message)
{
    struct phema_error err = {0};
    enum phema_status status = launch(*state, text, given, &err);
    if (!status)
        fail_msg("not found: %s", message);
    if (!strstr(err.message, message))
        fail_msg("expected '%s', found '%s'", message, err.message);
}

static void assert_found(void **state, const char *text, const char *message)
{
    assert_found_in(state, text, &one_block, message);
}

static void assert_output(void **state, const char *text, uint32_t (*wanted)(uint32_t thread))
{
    struct phema_error err = {0};
    const struct memory *memory = *state;
    uint8_t *view;
    assert_ok(launch(memory, text, &one_block, &err), &err);
    assert_ok(ptx_view(&view, 0, memory->out, N_BYTES, true, &err), &err);
    for (uint32_t i = 0; i < N_THREADS; i++) {
        uint32_t found;
        memcpy(&found, view + (size_t)4 * i, 4);
        assert_int_equal(found, wanted(i));
    }
}

static uint32_t reversed(uint32_t i)
{
    return 1000 + N_THREADS - 1 - i;
}

/* Each thread writes a word, waits, and reads another thread's. */
static void barriers_exchange_words(void **state)
{
    assert_output(state,
                  HEAD "ld.global.u32 %r4, [%rd3];\nst.shared.u32 [%r2], %r4;\nbar.sync 0;\n"
                       "mov.u32 %r5, 63;\nsub.s32 %r5, %r5, %r1;\nshl.b32 %r5, %r5, 2;\n"
                       "add.s32 %r5, %r3, %r5;\nld.shared.u32 %r6, [%r5];\n"
                       "st.global.u32 [%rd4], %r6;\n" TAIL,
                  reversed);
}

static uint32_t collatz(uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t at = i + 1; at != 1; n++)
        at = at % 2 ? 3 * at + 1 : at / 2;
    return n;
}

/* Loops of different length and both sides of a branch, in every combination. */
static void threads_part_and_meet(void **state)
{
    assert_output(state,
                  HEAD "add.s32 %r4, %r1, 1;\nmov.u32 %r5, 0;\n$L1:\nsetp.eq.s32 %p1, %r4, 1;\n"
                       "@%p1 bra $L4;\nand.b32 %r6, %r4, 1;\nsetp.eq.s32 %p2, %r6, 1;\n"
                       "@!%p2 bra $L2;\nmul.lo.s32 %r4, %r4, 3;\nadd.s32 %r4, %r4, 1;\n"
                       "bra.uni $L3;\n$L2:\nshr.u32 %r4, %r4, 1;\n$L3:\nadd.s32 %r5, %r5, 1;\n"
                       "bra.uni $L1;\n$L4:\nst.global.u32 [%rd4], %r5;\n" TAIL,
                  collatz);
}

static uint32_t half_and_three(uint32_t i)
{
    return i % 2 ? 64 : 0x3f000000 + 3;
}

/* Atomic additions, guarded instructions, constants of floats, conversions. */
static void atomics_guards_and_floats(void **state)
{
    assert_output(state,
                  HEAD
                  "setp.eq.s32 %p1, %r1, 0;\nmov.u32 %r4, 0;\n@%p1 st.shared.u32 [shared], %r4;\n"
                  "bar.sync 0;\natom.shared.add.u32 %r5, [shared], 1;\nbar.sync 0;\n"
                  "ld.shared.u32 %r6, [shared];\nmov.f64 %fd1, 0d3FD0000000000000;\n"
                  "fma.rn.f64 %fd2, %fd1, 0d3FF0000000000000, %fd1;\ncvt.rn.f32.f64 %f1, %fd2;\n"
                  "mov.b32 %r7, %f1;\nadd.s32 %r7, %r7, 3;\nand.b32 %r8, %r1, 1;\n"
                  "setp.eq.s32 %p2, %r8, 1;\nselp.b32 %r9, %r6, %r7, %p2;\n"
                  "st.global.u32 [%rd4], %r9;\n" TAIL,
                  half_and_three);
}

/* Bits as PTX ISA 9.0 defines them, by hand. F32: 3f800000 is 1, one unit is 2^-23. */
static void operations_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    static const struct {
        const char *mnemonic;
        uint64_t a, b, c, result;
    } rows[] = {
        /* integers wrap and are extended with zeros */
        {"add.s16", 0xffff, 2, 0, 1},
        {"add.s32", 0xffffffff, 2, 0, 1},
        {"sub.s32", 0, 1, 0, 0xffffffff},
        {"sub.s64", 0, 1, 0, UINT64_MAX},
        {"neg.s32", 1, 0, 0, 0xffffffff},
        {"not.b16", 0xff00, 0, 0, 0x00ff},
        {"not.b32", 0, 0, 0, 0xffffffff},
        {"not.pred", 0, 0, 0, 1},
        {"xor.pred", 1, 1, 0, 0},
        {"mul.lo.s32", 0x10001, 0x10001, 0, 0x20001},
        {"mul.wide.u16", 0xffff, 0xffff, 0, 0xfffe0001},
        {"mul.wide.u32", 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001},
        {"mul.wide.s32", 0xffffffff, 2, 0, 0xfffffffffffffffe},
        {"mad.lo.s64", UINT64_MAX, 3, 5, 2},
        /* distances of shifts are clamped, not taken modulo the width */
        {"shl.b16", 0x8001, 1, 0, 2},
        {"shl.b32", 1, 31, 0, 0x80000000},
        {"shl.b32", 1, 32, 0, 0},
        {"shl.b64", 1, 64, 0, 0},
        {"shr.u16", 0x8000, 15, 0, 1},
        {"shr.u32", 0x80000000, 31, 0, 1},
        {"shr.u32", 0x80000000, 33, 0, 0},
        {"shr.u64", UINT64_MAX, 64, 0, 0},
        {"shr.s32", 0x80000000, 4, 0, 0xf8000000},
        {"shr.s32", 0x80000000, 40, 0, 0xffffffff},
        {"shr.s64", 0x8000000000000000, 64, 0, UINT64_MAX},
        /* signs count where the type has one, bits beyond the width nowhere */
        {"min.u32", 0xffffffff, 1, 0, 1},
        {"min.s32", 0xffffffff, 1, 0, 0xffffffff},
        {"max.u64", 0x8000000000000000, 1, 0, 0x8000000000000000},
        {"max.s64", 0x8000000000000000, 1, 0, 1},
        {"setp.lt.u32", 0xffffffff, 0, 0, 0},
        {"setp.lt.s32", 0xffffffff, 0, 0, 1},
        {"setp.ge.u32", 7, 7, 0, 1},
        {"setp.gt.u64", 0x100000000, 1, 0, 1},
        {"setp.gt.s64", 0x8000000000000000, 1, 0, 0},
        {"setp.eq.s16", 0x10001, 1, 0, 1},
        {"setp.lt.s16", 0xffff, 0, 0, 1},
        {"setp.ne.s32", 0x100000001, 1, 0, 0},
        {"selp.b32", 5, 6, 1, 5},
        {"selp.b64", 5, 6, 0, 6},
        {"cvt.u16.u32", 0x12345, 0, 0, 0x2345},
        {"cvt.u32.u64", 0x123456789, 0, 0, 0x23456789},
        {"cvt.u64.u32", 0x80000000, 0, 0, 0x80000000},
        {"cvt.s64.s32", 0x80000000, 0, 0, 0xffffffff80000000},
        /* F64 to F32: ties to even, the edge of overflow, subnormal results, zeros, NaN */
        {"cvt.rn.f32.f64", 0x3ff0000010000000, 0, 0, 0x3f800000},
        {"cvt.rn.f32.f64", 0x3ff0000010000001, 0, 0, 0x3f800001},
        {"cvt.rn.f32.f64", 0x3ff0000030000000, 0, 0, 0x3f800002},
        {"cvt.rn.f32.f64", 0x47efffffefffffff, 0, 0, 0x7f7fffff},
        {"cvt.rn.f32.f64", 0x47effffff0000000, 0, 0, 0x7f800000},
        {"cvt.rn.f32.f64", 0x3690000000000000, 0, 0, 0},
        {"cvt.rn.f32.f64", 0x3690000000000001, 0, 0, 1},
        {"cvt.rn.f32.f64", 0x8000000000000001, 0, 0, 0x80000000},
        {"cvt.rn.f32.f64", 0xfff0000000000000, 0, 0, 0xff800000},
        {"cvt.rn.f32.f64", 0xfff8000000000001, 0, 0, 0x7fffffff},
        {"cvt.f64.f32", 0x00000001, 0, 0, 0x36a0000000000000},
        /* one rounding: (1 + 2^-27)^2 - (1 + 2^-26) = 2^-54; nothing is flushed to zero */
        {"fma.rn.f64", 0x3ff0000002000000, 0x3ff0000002000000, 0xbff0000004000000,
         0x3c90000000000000},
        {"fma.rn.f32", 0x3f800800, 0x3f800800, 0xbf801000, 0x33800000},
        /* (1 + 2^-12)^2 + 2^-60 is above a tie of F32, and on it once rounded to F64 */
        {"fma.rn.f32", 0x3f800800, 0x3f800800, 0x21800000, 0x3f801001},
        {"fma.rn.f32", 0x00800000, 0x3f000000, 0, 0x00400000},
        {"fma.rn.f32", 0x7f800000, 0, 0x3f800000, 0x7fffffff},
        {"mul.rn.f32", 0x00000001, 0x77800000, 0, 0x2d000000},
        {"add.rn.f64", 0x3ff0000000000000, 0x3ca0000000000000, 0, 0x3ff0000000000000},
        /* the absolute value of a NaN in F64 keeps its sign */
        {"abs.f32", 0xbf800000, 0, 0, 0x3f800000},
        {"abs.f64", 0xbff0000000000000, 0, 0, 0x3ff0000000000000},
        {"abs.f64", 0xfff8000000000001, 0, 0, 0xfff8000000000001},
        {"setp.neu.f64", 0x7ff8000000000000, 0x7ff8000000000000, 0, 1},
        {"setp.neu.f64", 0x8000000000000000, 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n_sources;
        uint64_t found = 0;
        ptx_compute *compute = ptx_compute_named(rows[i].mnemonic, &n_sources);
        assert_non_null(compute);
        compute(&found, &rows[i].a, &rows[i].b, &rows[i].c, NULL, 1);
        if (found != rows[i].result)
            fail_msg("row %zu, %s: %#llx instead of %#llx", i, rows[i].mnemonic,
                     (unsigned long long)found, (unsigned long long)rows[i].result);
    }
}

static void wrong_accesses_are_found(void **state)
{
    assert_found(state, HEAD "ld.global.u32 %r4, [%rd3+4];\n" TAIL,
                 "outside of the device's memory");
    assert_found(state, HEAD "ld.global.u32 %r4, [%rd3+4];\n" TAIL, "thread 63");
    assert_found(state, HEAD "ld.global.u32 %r4, [%rd3+-4];\n" TAIL, "outside");
    assert_found(state, HEAD "st.global.u32 [%rd4+256], %r1;\n" TAIL, "outside");
    assert_found(state, HEAD "ld.global.u64 %rd6, [%rd3];\n" TAIL, "misaligned");
    assert_found(state, HEAD "ld.global.u16 %rs1, [%rd3+1];\n" TAIL, "misaligned");
    assert_found(state, HEAD "ld.param.u64 %rd6, [k_out+8];\n" TAIL, "of the parameters");
    assert_found(state, HEAD "ld.param.u64 %rd6, [k_out+-16];\n" TAIL, "of the parameters");
    assert_found(state, HEAD "ld.global.v2.u32 {%r4, %r5}, [%rd3];\n" TAIL, "misaligned vector");
    assert_found(state, HEAD "st.shared.u32 [%r2+4], %r1;\n" TAIL, "outside of shared memory");
    assert_found(state, HEAD "st.shared.u32 [%r2+2], %r1;\n" TAIL, "misaligned");
    assert_found(state, HEAD "ld.shared.u32 %r4, [%r2];\n" TAIL, "nobody wrote");
    assert_found(state, HEAD "atom.shared.add.u32 %r4, [%r2], 1;\n" TAIL, "nobody wrote");
    assert_found(state, HEAD "st.global.u32 [%rd4], %r1;\nld.global.u32 %r4, [%rd4];\n" TAIL,
                 "the same launch wrote");
    assert_found(state, HEAD "st.global.u32 [%rd2], %r1;\n" TAIL, "the same launch wrote");
    assert_found(state, HEAD "ld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd3], %r1;\n" TAIL,
                 "the same launch read");
}

/* No allocation begins where another one ends, and none is aligned better than CUDA promises. */
static void allocations_have_gaps(void **state)
{
    (void)state;
    enum { N = 8, BYTES = 65536 };
    struct phema_error err = {0};
    uint8_t *memory[N], *view;
    for (size_t i = 0; i < N; i++) {
        assert_ok(ptx_alloc(&memory[i], 0, BYTES, &err), &err);
        assert_int_equal((uintptr_t)memory[i] % 512, 256);
    }
    for (size_t i = 0; i < N; i++) {
        assert_ok(ptx_view(&view, 0, memory[i] + BYTES - 1, 1, false, &err), &err);
        assert_int_equal(ptx_view(&view, 0, memory[i] + BYTES, 1, false, &err), PHEMA_BUG);
        assert_int_equal(ptx_view(&view, 0, memory[i] - 1, 1, false, &err), PHEMA_BUG);
    }
    for (size_t i = 0; i < N; i++)
        assert_ok(ptx_free(memory[i], &err), &err);
}

#define UNWRITTEN "reads a register that nobody wrote"

static void registers_that_nobody_wrote_are_not_read(void **state)
{
    static const struct ptx_launch two_blocks = {.grid = {2, 1, 1}, .block = {N_THREADS, 1, 1}};
    assert_found(state, HEAD "add.s32 %r4, %r5, 1;\n" TAIL, UNWRITTEN);
    assert_found(state, HEAD "st.global.u32 [%rd4], %r4;\n" TAIL, UNWRITTEN);
    assert_found(state, HEAD "ld.global.u32 %r4, [%rd9];\n" TAIL, UNWRITTEN);
    assert_found(state, HEAD "@%p1 mov.u32 %r4, 1;\n" TAIL, UNWRITTEN);
    assert_found(state, HEAD "@!%p1 bra $L1;\n$L1:\n" TAIL, UNWRITTEN);
    /* by some threads only */
    assert_found(state,
                 HEAD "setp.ne.s32 %p1, %r1, 5;\n@%p1 mov.u32 %r4, 1;\nmov.u32 %r5, %r4;\n" TAIL,
                 "thread 5: " UNWRITTEN);
    assert_found(state,
                 HEAD "setp.eq.s32 %p1, %r1, 63;\n@%p1 bra $L1;\nmov.u32 %r4, 1;\n$L1:\n"
                      "mov.u32 %r5, %r4;\n" TAIL,
                 "thread 63: " UNWRITTEN);
    /* by another block */
    assert_found_in(state,
                    HEAD "mov.u32 %r4, %ctaid.x;\nsetp.eq.s32 %p1, %r4, 0;\n"
                         "@%p1 mov.u32 %r5, 1;\nmov.u32 %r6, %r5;\n" TAIL,
                    &two_blocks, "block 1,0,0, thread 0: " UNWRITTEN);
    assert_found_in(state,
                    HEAD "mov.u32 %r4, %ctaid.x;\nsetp.eq.s32 %p1, %r4, 0;\n"
                         "@%p1 st.shared.u32 [%r2], %r1;\nld.shared.u32 %r5, [%r2];\n" TAIL,
                    &two_blocks, "reads shared memory that nobody wrote");
}

static void memory_that_nobody_wrote_is_not_read(void **state)
{
    struct phema_error err = {0};
    struct memory memory = *(struct memory *)*state;
    uint8_t *view;
    assert_ok(ptx_alloc(&memory.in, 0, N_BYTES, &err), &err);
    assert_int_equal(launch(&memory, HEAD "ld.global.u32 %r4, [%rd3];\n" TAIL, &one_block, &err),
                     PHEMA_BUG);
    assert_non_null(strstr(err.message, "what nobody wrote"));
    assert_int_equal(ptx_view(&view, 0, memory.in, 4, true, &err), PHEMA_BUG);
    struct ptx_launch elsewhere = one_block;
    elsewhere.device = 1;
    assert_int_equal(launch(&memory, HEAD "st.global.u32 [%rd3], %r1;\n" TAIL, &elsewhere, &err),
                     PHEMA_BUG);
    assert_int_equal(ptx_view(&view, 1, memory.in, 4, false, &err), PHEMA_BUG);
    assert_ok(ptx_free(memory.in, &err), &err);
}

static void races_are_found(void **state)
{
    assert_found(state, HEAD "st.shared.u32 [shared], %r1;\n" TAIL, "another thread wrote");
    assert_found(
        state,
        HEAD "st.shared.u32 [%r2], %r1;\nxor.b32 %r4, %r2, 4;\nld.shared.u32 %r5, [%r4];\n" TAIL,
        "another thread wrote");
    assert_found(state,
                 HEAD "st.shared.u32 [%r2], %r1;\nbar.sync 0;\nxor.b32 %r4, %r2, 4;\n"
                      "ld.shared.u32 %r5, [%r4];\nst.shared.u32 [%r2], %r5;\n" TAIL,
                 "another thread read");
    assert_found(state,
                 HEAD "setp.eq.s32 %p1, %r1, 0;\n@%p1 st.shared.u32 [shared], %r1;\n"
                      "atom.shared.add.u32 %r4, [shared], 1;\n" TAIL,
                 "another thread wrote");
}

static void barriers_are_reached_by_all_threads(void **state)
{
    assert_found(state, HEAD "setp.eq.s32 %p1, %r1, 5;\n@%p1 bra $L1;\nbar.sync 0;\n$L1:\n" TAIL,
                 "thread 5 has ended");
    assert_found(state,
                 HEAD "setp.eq.s32 %p1, %r1, 5;\n@%p1 bra $L1;\nbar.sync 0;\nbra.uni $L2;\n"
                      "$L1:\nbar.sync 0;\n$L2:\n" TAIL,
                 "waits at another one");
    assert_found(state, HEAD "$L1:\nbra.uni $L1;\n" TAIL, "does not end");
}

static void launches_beyond_the_limits_are_refused(void **state)
{
    static const struct ptx_launch launches[] = {
        {.grid = {1, 1, 1}, .block = {65, 1, 1}}, /* .maxntid */
        {.grid = {1, 1, 1}, .block = {0, 1, 1}},
        {.grid = {0, 1, 1}, .block = {1, 1, 1}},
        {.grid = {1, 65536, 1}, .block = {1, 1, 1}},
        {.grid = {1, 1, 65536}, .block = {1, 1, 1}},
        {.grid = {2147483648u, 1, 1}, .block = {1, 1, 1}},
        {.grid = {1, 1, 1}, .block = {1, 1, 65}},
    };
    for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
        struct phema_error err = {0};
        assert_int_equal(launch(*state, HEAD TAIL, &launches[i], &err), PHEMA_BUG);
    }
    assert_found(state, ".entry k() { .shared .align 4 .b8 s[49156];\nret;\n}\n", "49156 bytes");
}

static void unknown_text_is_refused_by_name(void **state)
{
    assert_found(state, HEAD "popc.b32 %r4, %r1;\n" TAIL, "unknown instruction 'popc.b32'");
    assert_found(state, HEAD "ld.local.u32 %r4, [%r1];\n" TAIL,
                 "unknown instruction 'ld.local.u32'");
    /* what only looks like a known one */
    assert_found(state, HEAD "cvt.rz.f32.f64 %f1, %fd1;\n" TAIL, "'cvt.rz.f32.f64'");
    assert_found(state, HEAD "fma.rn.ftz.f32 %f1, %f1, %f1, %f1;\n" TAIL, "'fma.rn.ftz.f32'");
    assert_found(state, HEAD "ld.global.s16 %rs1, [%rd3];\n" TAIL, "'ld.global.s16'");
    assert_found(state, HEAD "ld.volatile.shared.u32 %r4, [%r2];\n" TAIL, "'ld.volatile.");
    assert_found(state, HEAD "atom.shared.add.f32 %f1, [%r2], %f1;\n" TAIL,
                 "'atom.shared.add.f32'");
    assert_found(state, HEAD "mov.u32 %r99, %r1;\n" TAIL, "unknown operand '%r99'");
    assert_found(state, HEAD "mov.u32 %r4, %laneid;\n" TAIL, "unknown operand '%laneid'");
    assert_found(state, HEAD "bra $L9;\n" TAIL, "unknown label '$L9'");
    assert_found(state, HEAD "bar.sync 1;\n" TAIL, "only barrier 0");
    assert_found(state, ".func f() { ret; }\n", "unknown directive '.func'");
    assert_found(state, HEAD "}\n", "does not end with ret");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(barriers_exchange_words),
    cmocka_unit_test(threads_part_and_meet),
    cmocka_unit_test(atomics_guards_and_floats),
    cmocka_unit_test(operations_have_the_bits_of_the_definition),
    cmocka_unit_test(wrong_accesses_are_found),
    cmocka_unit_test(allocations_have_gaps),
    cmocka_unit_test(registers_that_nobody_wrote_are_not_read),
    cmocka_unit_test(memory_that_nobody_wrote_is_not_read),
    cmocka_unit_test(races_are_found),
    cmocka_unit_test(barriers_are_reached_by_all_threads),
    cmocka_unit_test(launches_beyond_the_limits_are_refused),
    cmocka_unit_test(unknown_text_is_refused_by_name),
};
TEST_GROUP_WITH(tests, open_memory, close_memory)
