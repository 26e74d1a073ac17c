// SPDX-License-Identifier: Apache-2.0
/* Which tensors of a checkpoint form which snapshot: names as trainers write them, and names that
 * are nearly such. */
#include "sets.h"

#include <math.h>

#include "../formats/build.h"

#define FLOATS /* two */                                                                           \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"         \
    "0X\3"                                                                                         \
    "\0\0\0cpuK\2tQK\0K\2\x85K\1\x85\x89NtR"

/* A file with these tensors: names that are separated by spaces. NAME=0.5 is a number. */
static char *make(const char *names)
{
    struct phema_strbuf pickle = {0}, file = {0};
    put(&pickle, "\x80\x02}(", 4);
    for (const char *at = names; *at;) {
        size_t size = strcspn(at, " =");
        char head[] = {'X', (char)size, 0, 0, 0};
        put(&pickle, head, sizeof(head));
        put(&pickle, at, size);
        bool is_number = at[size] == '=';
        if (is_number)
            put(&pickle, "G\x3F\xE0\0\0\0\0\0\0", 9); /* 0.5, big-endian */
        else
            put(&pickle, FLOATS, sizeof(FLOATS) - 1);
        at += size + strcspn(at + size, " ");
        at += *at == ' ';
    }
    put(&pickle, "u.", 2);
    put_torch(&file, pickle.data, pickle.size, 8);
    char *path = support_tmp_path("file");
    support_write(path, file.data, file.size);
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
    return path;
}

/* "TRAINER: SET SPEC, SET SIGMA, ...", or the message of a failure. */
static void describe(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint)
{
    struct candidate candidate = {.path = "/nowhere", .named_time = 100};
    struct phema_arena arena = {0};
    struct phema_tensor_sets sets;
    struct phema_error err = {0};
    assert_ok(phema_tensor_sets_list(&sets, &arena, checkpoint, &err), &err);
    const struct set_scheme scheme = {.trainer = sets.trainer};
    if (!sets.trainer)
        phema_strbuf_puts(out, "none");
    else if (tensor_sets_make(&sets, &scheme, &arena, &candidate, checkpoint, &err))
        phema_strbuf_puts(out, err.message);
    else {
        phema_strbuf_printf(out, "%s:", sets.trainer->name);
        for (size_t s = 0; s < sets.n; s++) {
            const struct phema_tensor_set *set = sets.items[s];
            phema_strbuf_printf(out, "%s %s", s ? "," : "", set->name);
            if (set->spec)
                phema_strbuf_printf(out, " %s", set->spec);
            if (!isnan(set->sigma_rel))
                phema_strbuf_printf(out, " %g", set->sigma_rel);
        }
    }
    phema_arena_clear(&arena);
}

static void check(const char *names, const char *wanted)
{
    char *path = make(names);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    struct phema_strbuf found = {0};
    describe(&found, checkpoint);
    assert_string_equal(found.data, wanted);
    phema_strbuf_clear(&found);
    phema_checkpoint_close(checkpoint);
    free(path);
}

static void trainers_are_known_by_their_names(void **state)
{
    (void)state;
    check("w ema.state.w.ema_params optimizer.state.w.exp_avg", "torchtitan: raw, ema");
    check("w ema.state.w.ema_params.half_life_0p1 ema.state.w.ema_params.decay_0p999",
          "torchtitan: raw, decay_0p999 titan:decay=0.999, half_life_0p1 titan:fraction=0.1");
    check("w ema.state.w.ema_params.half_life_1em05",
          "torchtitan: raw, half_life_1em05 titan:fraction=1e-05");
    check("net.w net_ema.w", "Cosmos: raw, ema");
    check("model.net.w model.net_ema.w optimizer.state.0.exp_avg", "Cosmos: raw, ema");
    check("model.model.w ema_0p10.tensors.w ema_0p05.tensors.w",
          "flux_action: raw, ema_0p05 0.05, ema_0p10 0.1");
    check("state_dict.w current_model_state.w averaging_state.n_averaged", "Lightning: raw, ema");
    check("state_dict.w c.profiles.0.params.w c.profiles.0.std=",
          "a power-function callback: raw, profiles.0 0.5");
    check("profiles.0.w stds.0= profiles.1.w stds.1=",
          "the averages 'profiles.0' and 'profiles.1' have the same profile; expected one of each");
    check("profiles.0.w stds.0=", "mirai: profiles.0 0.5");
}

static void names_that_are_nearly_such_are_not(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "w",
        "ema.state.w",
        "w ema.state..ema_params",
        "w ema.state.ema_params",
        "w ema.state.w.ema_params.",
        "w ema.state.w.ema_params.a.b",
        "w ema.state.w.ema_paramsx",
        "w ema.state.w.ema_params.half-life",
        "net.w",
        "net_ema.w",
        "model.net.",
        "state_dict.w current_model_state.w",
        "state_dict.w averaging_state.n_averaged",
        "model.model.w ema_0p10.w",
        "model.model.w ema_A.tensors.w",
        "profiles.0.w",
        "profiles.0 stds.0=",
        "profiles..w stds.0=",
        "profiles.00000000000000000000.w stds.0=",
        "xprofiles.0.params.w xprofiles.0.std=",
    };
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        check(plain[i], "none");
}

static void the_last_suffix_counts(void **state)
{
    (void)state;
    char *path = make("w.ema_params ema.state.w.ema_params.ema_params");
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    struct phema_arena arena = {0};
    struct phema_tensor_sets sets;
    assert_ok(phema_tensor_sets_list(&sets, &arena, checkpoint, &err), &err);
    assert_non_null(sets.trainer);
    const struct set_scheme scheme = {.trainer = sets.trainer};
    const struct candidate candidate = {.named_time = 100};
    assert_ok(tensor_sets_make(&sets, &scheme, &arena, &candidate, checkpoint, &err), &err);
    const struct phema_set_member *member =
        member_of(&sets, &phema_checkpoint_tensors(checkpoint)[1]);
    assert_true(phema_bytes_are(member->name, member->name_size, "w.ema_params"));
    assert_string_equal(member->set->name, "ema");
    phema_arena_clear(&arena);
    phema_checkpoint_close(checkpoint);
    free(path);
}

static void containers_that_disagree_are_refused(void **state)
{
    (void)state;
    check("ema.state.w.ema_params", "holds averages of torchtitan, but no raw parameters, which "
                                    "frozen tensors come from; name one set of tensors with --key");
    check("w ema.state.w.ema_params.x", "average 'x': expected a key like half_life_0p05 or "
                                        "decay_0p999");
    check("w ema.state.w.ema_params ema.state.w.ema_params.half_life_0p1",
          "holds averages whose names have a width, and others without; expected one of these "
          "kinds");
    check("w ema.state.w.ema_params.half_life_0p1 ema.state.w.ema_params.half_life_0p10",
          "the averages 'half_life_0p1' and 'half_life_0p10' have the same profile; expected one "
          "of each");
    check("profiles.0.w stds.0= profiles.1.w", "holds the average 'profiles.1', but not its width");
    check("profiles.0.w stds.0= step=", "its name says time 100, but 'step' inside is 0.5");
    /* averages of other names than the model's are used alone */
    check("state_dict.m.w c.profiles.0.params.w c.profiles.0.std=",
          "a power-function callback: profiles.0 0.5");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(trainers_are_known_by_their_names),
    cmocka_unit_test(names_that_are_nearly_such_are_not),
    cmocka_unit_test(the_last_suffix_counts),
    cmocka_unit_test(containers_that_disagree_are_refused),
};
TEST_GROUP(tests)
