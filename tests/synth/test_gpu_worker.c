// SPDX-License-Identifier: Apache-2.0
/* Whole runs on a device. For any snapshots and any device memory the bytes are those of the CPU,
 * and failures are reported. The build has a plug-in whose device is host memory. scripts/test-gpu
 * runs these tests with the real plug-in, without the cases that need the simulated one
 * (SIM_...). */
#include "phema/synth.h"

#include <dirent.h>
#include <unistd.h>

#include "runs.h"

enum { N_BIG = 50011, N_SNAPSHOTS = 7 };

static uint64_t random_state = 5;

/* A directory of snapshots, and the outputs of its averages. */
struct made {
    char *directory;
    char *out[2]; /* of the processor, of the device */
    struct phema_strbuf weights;
};

static void make(struct made *made, const char *name, bool has_f8)
{
    *made = (struct made){.directory = make_directory(name)};
    static uint8_t big[N_BIG * 8], small[64], halves[6000], doubles[800], singles[40000], tiny[999];
    static uint8_t frozen[8192];
    support_fill_numbers(frozen, PHEMA_F16, sizeof(frozen) / 2, true, &random_state);
    for (int k = 0; k < N_SNAPSHOTS; k++) {
        char file[64];
        support_fill_numbers(big, PHEMA_F16, N_BIG, false, &random_state);
        support_fill_numbers(small, PHEMA_F16, 31, true, &random_state);
        support_fill_numbers(halves, PHEMA_BF16, 3000, false, &random_state);
        support_fill_numbers(doubles, PHEMA_F64, 100, k == 3, &random_state);
        support_fill_numbers(singles, PHEMA_F32, 10000, false, &random_state);
        support_fill_numbers(tiny, PHEMA_F8_E4M3, sizeof(tiny), false, &random_state);
        support_fill_numbers(frozen, PHEMA_F16, 1024, false,
                             &random_state); /* except its first block */
        const struct entry entries[] = {{"big", PHEMA_F16, N_BIG, false, big},
                                        {"constant", PHEMA_F16, 2000, false, frozen + 4096},
                                        {"doubles", PHEMA_F64, 100, false, doubles},
                                        {"empty", PHEMA_F32, 0, false, NULL},
                                        {"frozen", PHEMA_F16, sizeof(frozen) / 2, false, frozen},
                                        {"halves", PHEMA_BF16, 3000, false, halves},
                                        {"scalar", PHEMA_F32, 1, true, singles},
                                        {"singles", PHEMA_F32, 9999, false, singles + 4},
                                        {has_f8 ? "tiny" : "whole",
                                         has_f8 ? PHEMA_F8_E4M3 : PHEMA_U8, sizeof(tiny), false,
                                         tiny}};
        (void)snprintf(file, sizeof(file), "snapshot-%07d-0.050.safetensors", 100 * (k + 1));
        write_snapshot(made->directory, file, entries, ARRAY_LEN(entries));
        double weight = (k % 2 ? -0.25 : 0.5) + (k == 6 ? -0.25 : 0); /* the weights add up to 1 */
        phema_strbuf_printf(&made->weights, "%s %.17g\n", file, weight);
    }
    made->out[0] = support_tmp_path("processor.safetensors");
    made->out[1] = support_tmp_path("device.safetensors");
}

static void clear(struct made *made)
{
    for (int i = 0; i < 2; i++) {
        (void)unlink(made->out[i]);
        free(made->out[i]);
    }
    phema_strbuf_clear(&made->weights);
    free(made->directory);
}

static const struct phema_gpu_options cuda = {.kind = PHEMA_DEVICE_CUDA, .n = 1};

static void assert_same_file(const char *a, const char *b)
{
    size_t sizes[2];
    uint8_t *data[2] = {support_read(a, &sizes[0]), support_read(b, &sizes[1])};
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(data[0], data[1], sizes[0]);
    free(data[0]);
    free(data[1]);
}

/* Runs on the CPU and on the requested device. */
static void compare_runs(const struct made *made, struct request request,
                         struct phema_synth_result results[2])
{
    struct phema_error err = {0};
    struct phema_gpu_options gpu = request.gpu;
    request.gpu = (struct phema_gpu_options){.kind = PHEMA_DEVICE_CPU};
    assert_ok(synthesise(made->directory, made->out[0], &request, &results[0], &err), &err);
    request.gpu = gpu;
    assert_ok(synthesise(made->directory, made->out[1], &request, &results[1], &err), &err);
    assert_true(results[1].device.is_gpu);
    assert_false(results[0].device.is_gpu);
    assert_string_equal(results[0].device.name, "cpu");
    assert_same_file(made->out[0], made->out[1]);
    assert_int_equal(results[0].n_nan, results[1].n_nan);
    assert_int_equal(results[0].n_inf, results[1].n_inf);
    assert_int_equal(results[0].n_overflow, results[1].n_overflow);
    assert_int_equal(results[0].n_constant, results[1].n_constant);
    assert_int_equal(results[0].n_averaged, results[1].n_averaged);
    assert_int_equal(results[0].read_bytes, results[1].read_bytes);
    assert_true(results[0].nan_tensor == results[1].nan_tensor);
}

static void bytes_are_those_of_the_processor(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_N_DTYPES, PHEMA_F32, PHEMA_F16, PHEMA_BF16};
    for (int has_f8 = 0; has_f8 < 2; has_f8++) {
        struct made made;
        make(&made, has_f8 ? "with_f8" : "without_f8", has_f8);
        for (size_t i = 0; i < 16; i++) {
            struct request request = {.weights = made.weights.data,
                                      .n_threads = 1 + (unsigned)i % 3 * 2,
                                      .has_dtype = i % 4 > 0,
                                      .dtype = dtypes[i % 4],
                                      .overflow = i % 3 ? PHEMA_OVERFLOW_SATURATES
                                                        : PHEMA_OVERFLOW_BECOMES_INF,
                                      .sums = (enum phema_sums)(i / 4 % 3),
                                      .gpu = cuda};
            struct phema_synth_result results[2];
            compare_runs(&made, request, results);
            assert_true(results[0].n_nan > 0);      /* the data contain some NaN */
            assert_true(results[0].n_constant > 0); /* and blocks that are equal */
        }
        clear(&made);
    }
}

static void several_targets_share_the_inputs(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct made made;
    make(&made, "sweep_in", false);
    char *from = support_tmp_path("sweep");
    double widths[19];
    for (size_t m = 0; m < ARRAY_LEN(widths); m++)
        widths[m] = 0.03 + 0.01 * (double)m;
    for (size_t n = 1; n <= ARRAY_LEN(widths); n += 6) {
        for (int pass = 0; pass < 2; pass++) {
            char *out = NULL;
            assert_true(asprintf(&out, "%s/%s/{sigma}.safetensors", support_tmp(),
                                 pass ? "device" : "processor") > 0);
            struct request request = {
                .sigma_rels = widths, .n_sigma_rels = n, .overflow = PHEMA_OVERFLOW_BECOMES_INF};
            if (pass)
                request.gpu = cuda;
            struct phema_synth_result result;
            assert_ok(synthesise(made.directory, out, &request, &result, &err), &err);
            assert_int_equal(result.device.is_gpu, pass);
            free(out);
        }
        for (size_t m = 0; m < n; m++) {
            char *names[2] = {NULL, NULL};
            for (int pass = 0; pass < 2; pass++)
                assert_true(asprintf(&names[pass], "%s/%s/%.3f.safetensors", support_tmp(),
                                     pass ? "device" : "processor", widths[m]) > 0);
            assert_same_file(names[0], names[1]);
            free(names[0]);
            free(names[1]);
        }
    }
    free(from);
    clear(&made);
}

/* Each run gets one byte less than the one before used, down to the least that is enough. */
static void little_memory_makes_smaller_tiles_not_other_bytes(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct made made;
    make(&made, "little", false);
    struct request request = {
        .weights = made.weights.data, .n_threads = 4, .overflow = PHEMA_OVERFLOW_BECOMES_INF};
    struct phema_synth_result result;
    assert_ok(synthesise(made.directory, made.out[0], &request, &result, &err), &err);
    request.gpu = cuda;
    request.gpu.memory_bytes = (uint64_t)64 << 20;
    enum phema_status status = PHEMA_OK;
    size_t n_layouts = 0;
    while (!status) {
        status = synthesise(made.directory, made.out[1], &request, &result, &err);
        if (status)
            continue;
        assert_same_file(made.out[0], made.out[1]);
        assert_true(result.device.gpu_bytes <= request.gpu.memory_bytes);
        request.gpu.memory_bytes = result.device.gpu_bytes - 1;
        n_layouts++;
    }
    assert_int_equal(status, PHEMA_ERR_RESOURCE);
    assert_non_null(strstr(err.message, "the smallest tiles of 7 snapshots"));
    assert_true(n_layouts > 5);
    assert_true(request.gpu.memory_bytes < (uint64_t)1 << 18);
    clear(&made);
}

static void max_ram_bounds_the_host_memory_of_devices(void **state)
{
    (void)state;
    struct made made;
    make(&made, "ram", false);
    struct request request = {.weights = made.weights.data,
                              .n_threads = 4,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                              .gpu = cuda};
    struct phema_synth_result results[2];
    request.max_ram_bytes = phema_memory_now().anonymous_bytes + ((uint64_t)16 << 20);
    compare_runs(&made, request, results);
    struct phema_error err = {0};
    request.max_ram_bytes = 1 << 20; /* less than the process uses */
    assert_fails(synthesise(made.directory, made.out[1], &request, &results[1], &err),
                 PHEMA_ERR_RESOURCE, &err, "tiles on their way to a device");
    clear(&made);
}

/* Overflow is an error that names the tensor, and leaves no output. */
static void overflow_gives_the_same_message(void **state)
{
    (void)state;
    struct phema_error errs[2] = {0};
    char *directory = make_directory("overflow_on_device");
    static const float old[2] = {1, 70000}, new[2] = {2, 80000};
    static const float fine[2] = {1, 2};
    const struct entry first[] = {{"fine", PHEMA_F32, 2, false, fine},
                                  {"net.w", PHEMA_F32, 2, false, old}};
    const struct entry second[] = {{"fine", PHEMA_F32, 2, false, old},
                                   {"net.w", PHEMA_F32, 2, false, new}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", first, 2);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", second, 2);
    char *out = support_tmp_path("overflow_on_device.safetensors");
    struct request request = {.weights = "snapshot-0000100-0.050.safetensors 0.5\n"
                                         "snapshot-0000200-0.050.safetensors 0.9\n",
                              .has_dtype = true,
                              .dtype = PHEMA_F16};
    struct phema_synth_result result;
    for (int i = 0; i < 2; i++) {
        request.gpu = i ? cuda : (struct phema_gpu_options){.kind = PHEMA_DEVICE_CPU};
        assert_fails(synthesise(directory, out, &request, &result, &errs[i]), PHEMA_ERR_OUTPUT,
                     &errs[i], "tensor 'net.w'");
        assert_int_not_equal(access(out, F_OK), 0);
    }
    assert_string_equal(errs[0].message, errs[1].message);
    free(out);
    free(directory);
}

static void devices_are_in_the_ledger(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct made made;
    make(&made, "memory_profile", false);
    struct phema_memory_profile *memory_profile = NULL;
    assert_ok(phema_memory_profile_open(&memory_profile, false, &err), &err);
    struct request request = {.weights = made.weights.data,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                              .gpu = cuda,
                              .memory_profile = memory_profile};
    struct phema_synth_result result;
    assert_ok(synthesise(made.directory, made.out[1], &request, &result, &err), &err);
    phema_memory_profile_end(memory_profile);
    struct phema_stage_record record =
        phema_memory_profile_stage(memory_profile, PHEMA_STAGE_ACCUMULATE);
    assert_true(record.has_device);
    assert_int_equal(record.device_allocated.baseline, 0);
    assert_int_equal(record.device_allocated.peak, result.device.gpu_bytes);
    assert_true(record.device_reserved.peak >= record.device_allocated.peak);
    assert_false(record.is_leaking);
    phema_memory_profile_close(memory_profile);
    clear(&made);
}

/* ---- Failures of the simulated device ---- */

static bool is_simulated(void)
{
    return getenv("PHEMA_REAL_DEVICE") == NULL;
}

static void all_devices_make_the_same_bytes(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct made made;
    make(&made, "several", false);
    assert_int_equal(setenv("SIM_DEVICES", "3", 1), 0);
    for (unsigned n_threads = 1; n_threads < 8; n_threads += 3) {
        struct request request = {.weights = made.weights.data,
                                  .n_threads = n_threads,
                                  .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                                  .gpu = {.kind = PHEMA_DEVICE_CUDA, .uses_all = true}};
        struct phema_synth_result results[2];
        compare_runs(&made, request, results);
        assert_int_equal(results[1].device.n_gpus, 3);
        assert_string_equal(results[1].device.name, "cuda:0,1,2 (3 x memory of the host)");
        request.gpu =
            (struct phema_gpu_options){.kind = PHEMA_DEVICE_CUDA, .n = 2, .indices = {2, 0}};
        compare_runs(&made, request, results);
    }
    assert_int_equal(unsetenv("SIM_DEVICES"), 0);
    clear(&made);
}

static void synchronous_devices_make_the_same_bytes(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct made made;
    make(&made, "eager", true);
    assert_int_equal(setenv("SIM_TIME", "now", 1), 0);
    struct request request = {
        .weights = made.weights.data, .overflow = PHEMA_OVERFLOW_BECOMES_INF, .gpu = cuda};
    struct phema_synth_result results[2];
    compare_runs(&made, request, results);
    assert_int_equal(unsetenv("SIM_TIME"), 0);
    clear(&made);
}

static void a_device_with_less_memory_than_reported_gets_smaller_tiles(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct phema_error err = {0};
    struct made made;
    make(&made, "less", false);
    struct request request = {.weights = made.weights.data,
                              .n_threads = 2,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                              .gpu = cuda};
    struct phema_synth_result results[2];
    compare_runs(&made, request, results);
    assert_string_equal(results[1].device.note, "");
    assert_int_equal(setenv("SIM_LARGEST", "400000", 1), 0);
    compare_runs(&made, request, results);
    assert_true(results[1].device.gpu_bytes <= 400000);
    assert_non_null(strstr(results[1].device.note, "to give: tiles of"));
    assert_int_equal(setenv("SIM_LARGEST", "1000", 1), 0); /* below the smallest tile */
    assert_fails(synthesise(made.directory, made.out[1], &request, &results[1], &err),
                 PHEMA_ERR_RESOURCE, &err, "memory of the device: out of memory");
    assert_int_equal(unsetenv("SIM_LARGEST"), 0);
    clear(&made);
}

static size_t n_files(void)
{
    DIR *directory = opendir(support_tmp());
    size_t n = 0;
    assert_non_null(directory);
    while (readdir(directory))
        n++;
    (void)closedir(directory);
    return n;
}

static void a_device_that_breaks_leaves_nothing(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct phema_error err = {0};
    struct made made;
    make(&made, "breaks", false);
    struct request request = {.weights = made.weights.data,
                              .n_threads = 3,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                              .gpu = cuda};
    struct phema_synth_result result;
    char *list = support_tmp_path("weights.txt"); /* each run writes this file */
    support_write(list, "", 0);
    free(list);
    size_t before = n_files();
    /* the first waits belong to the self-test with a small tile */
    static const char *const waits[] = {"1", "20", "45", "60"};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        assert_int_equal(setenv("SIM_BREAKS_AT", waits[i], 1), 0);
        assert_fails(synthesise(made.directory, made.out[1], &request, &result, &err),
                     PHEMA_ERR_RESOURCE, &err, "cuda:0: adding up on the device: an illegal");
        assert_int_not_equal(access(made.out[1], F_OK), 0);
    }
    assert_int_equal(unsetenv("SIM_BREAKS_AT"), 0);
    assert_int_equal(n_files(), before);
    clear(&made);
}

/* A device's sums are checked before it is used. */
static void a_device_with_wrong_sums_is_not_used(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct phema_error err = {0};
    struct made made;
    make(&made, "wrong", false);
    assert_int_equal(setenv("SIM_SUMS", "wrong", 1), 0);
    struct request request = {.weights = made.weights.data, .gpu = cuda};
    struct phema_synth_result result;
    assert_fails(synthesise(made.directory, made.out[1], &request, &result, &err),
                 PHEMA_ERR_RESOURCE, &err, "does not sum F16 as the processor does");
    assert_int_not_equal(access(made.out[1], F_OK), 0);
    assert_int_equal(unsetenv("SIM_SUMS"), 0);
    clear(&made);
}

static void an_unavailable_device_is_reported(void **state)
{
    (void)state;
    if (!is_simulated())
        skip();
    struct phema_error err = {0};
    struct made made;
    make(&made, "absent", false);
    struct request request = {.weights = made.weights.data, .gpu = cuda};
    struct phema_synth_result result;
    assert_int_equal(setenv("SIM_DRIVER", "none", 1), 0);
    assert_fails(synthesise(made.directory, made.out[1], &request, &result, &err),
                 PHEMA_ERR_RESOURCE, &err, "--device cuda: no NVIDIA driver is installed");
    assert_int_equal(unsetenv("SIM_DRIVER"), 0);
    assert_int_equal(setenv("SIM_MAJOR", "7", 1), 0);
    assert_fails(synthesise(made.directory, made.out[1], &request, &result, &err),
                 PHEMA_ERR_RESOURCE, &err, "compute capability 7.0, and at least 8.0 is needed");
    assert_int_equal(unsetenv("SIM_MAJOR"), 0);
    request.gpu.indices[0] = 4;
    assert_fails(synthesise(made.directory, made.out[1], &request, &result, &err),
                 PHEMA_ERR_RESOURCE, &err,
                 "cuda:4: there is no such device, the last one is cuda:0");
    clear(&made);
}

static void little_work_stays_on_the_processor(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct made made;
    make(&made, "auto", false);
    struct request request = {.weights = made.weights.data,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF,
                              .gpu = {.kind = PHEMA_DEVICE_AUTO}};
    struct phema_synth_result result;
    assert_ok(synthesise(made.directory, made.out[1], &request, &result, &err), &err);
    assert_false(result.device.is_gpu);
    assert_true(result.device.why[0]);
    clear(&made);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_are_those_of_the_processor),
    cmocka_unit_test(several_targets_share_the_inputs),
    cmocka_unit_test(little_memory_makes_smaller_tiles_not_other_bytes),
    cmocka_unit_test(max_ram_bounds_the_host_memory_of_devices),
    cmocka_unit_test(overflow_gives_the_same_message),
    cmocka_unit_test(devices_are_in_the_ledger),
    cmocka_unit_test(all_devices_make_the_same_bytes),
    cmocka_unit_test(synchronous_devices_make_the_same_bytes),
    cmocka_unit_test(a_device_with_less_memory_than_reported_gets_smaller_tiles),
    cmocka_unit_test(a_device_that_breaks_leaves_nothing),
    cmocka_unit_test(a_device_with_wrong_sums_is_not_used),
    cmocka_unit_test(an_unavailable_device_is_reported),
    cmocka_unit_test(little_work_stays_on_the_processor),
};
TEST_GROUP(tests)
