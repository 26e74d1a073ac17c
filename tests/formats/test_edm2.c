// SPDX-License-Identifier: Apache-2.0
/* Plain pickles: networks of EDM2, and other content of their format. test_fixtures.c compares
 * EDM2's own snapshots with EDM2's listings. */
#include "phema/formats.h"

#include "build.h"

#define PROTO            "\x80\x04"
#define TEXT(size, text) "X" size "\0\0\0" text
#define SPAN(literal)    ((struct phema_span)BYTES_OF(literal))

/* Not an opcode: a placeholder for a tensor of 4 halves with its own storage. */
#define T "\xFD"

#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define LOAD    "ctorch.storage\n_load_from_bytes\n"
#define PERSIST "ctorch_utils.persistence\n_reconstruct_persistent_obj\n"

#define META(type, version, source, state)                                                         \
    TEXT("\4", "type")                                                                             \
    type TEXT("\7", "version") version TEXT("\x0A", "module_src")                                  \
        source TEXT("\x0A", "class_name") TEXT("\3", "Net") TEXT("\5", "state") state
#define TYPE          TEXT("\5", "class")
#define SOURCE        TEXT("\4", "pass")
#define OBJECT(state) PERSIST "}(" META(TYPE, "K\6", SOURCE, state) "u\x85R"
#define STATE(parameters, buffers, left_out, children)                                             \
    "}(" TEXT("\x0B", "_parameters") parameters TEXT("\x08", "_buffers")                           \
        buffers TEXT("\x1B", "_non_persistent_buffers_set") left_out TEXT("\x08", "_modules")      \
            children "u"
#define NO_SET "\x8F"
#define NET    OBJECT(STATE("}" TEXT("\1", "w") T "s", "}", NO_SET, "}"))

static void put_bytes(struct phema_strbuf *out, const struct phema_strbuf *bytes)
{
    put_text(out, "B");
    put_int(out, bytes->size, 4);
    put(out, bytes->data, bytes->size);
}

static void put_tensor(struct phema_strbuf *out, const struct legacy_file *inner)
{
    struct phema_strbuf bytes = {0};
    put_legacy(&bytes, inner);
    put_text(out, REBUILD "(" LOAD);
    put_bytes(out, &bytes);
    static const char rest[] = "\x85RK\0K\4\x85K\1\x85\x89)tR";
    put(out, rest, sizeof(rest) - 1);
    phema_strbuf_clear(&bytes);
}

static void put_program(struct phema_strbuf *out, struct phema_span program)
{
    for (size_t i = 0; i < program.size; i++) {
        if (program.data[i] == 0xFD)
            put_tensor(out, &legacy_storage);
        else
            put(out, program.data + i, 1);
    }
}

static void refuse(struct phema_span program, const char *reason)
{
    struct phema_strbuf file = {0};
    put_program(&file, program);
    assert_refused(file.data, file.size, reason);
    phema_strbuf_clear(&file);
}
#define REFUSE(program, reason) refuse(SPAN(program), reason)

static struct phema_checkpoint *accept(struct phema_span program)
{
    struct phema_strbuf file = {0};
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    put_program(&file, program);
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "pickle");
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        assert_memory_equal(phema_tensor_start(checkpoint, tensor), "abcdefgh", 8);
    }
    phema_strbuf_clear(&file);
    return checkpoint;
}
#define ACCEPT(program) accept(SPAN(program))

/* "name:k" of each tensor, k its kind: parameter, buffer or attribute */
static void check_names(struct phema_checkpoint *checkpoint, const char *wanted)
{
    static const char *const kinds[] = {"", ":p", ":b", ":a"};
    struct phema_strbuf names = {0};
    put_text(&names, "");
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        put_text(&names, i ? " " : "");
        put(&names, tensor->name, tensor->name_size);
        put_text(&names, kinds[tensor->kind]);
    }
    assert_string_equal(names.data, wanted);
    phema_strbuf_clear(&names);
    phema_checkpoint_close(checkpoint);
}

#define LINEAR(state) "ctorch.nn.modules.linear\nLinear\n)\x81" state "b"

static void the_network_lists_as_its_state_dict(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO "cdnnlib.util\nEasyDict\n)\x81(" TEXT("\7", "encoder")
                           OBJECT("}" TEXT("\5", "scale") T "s") TEXT("\7", "augment")
                               NET TEXT("\4", "loss") OBJECT("N") TEXT("\3", "ema") OBJECT(STATE(
                                   "}(" TEXT("\1", "w") T TEXT("\1", "n") "Nu",
                                   "}(" TEXT("\1", "b") T TEXT("\1", "t") T "u",
                                   NO_SET "(" TEXT("\1", "t") "\x90",
                                   "}(" TEXT("\1", "c")
                                       LINEAR(STATE("}" TEXT("\1", "w") T "s", "}", NO_SET, "}"))
                                           TEXT("\1", "d") "N" TEXT("\1", "e") NET "u")) "u."),
                "ema.w:p ema.b:b ema.c.w:p ema.e.w:p encoder.scale:a augment.w:a");
    /* shared parameters are one tensor under two names */
    check_names(ACCEPT(PROTO "}" TEXT("\3", "ema") OBJECT(STATE(
                    "}(" TEXT("\1", "w") T "\x94" TEXT("\1", "v") "h\0u", "}", NO_SET, "}")) "s."),
                "ema.w:p ema.v:p");
}

static void other_pickles_list_their_tensors(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO T "."), "tensor");
    check_names(ACCEPT(PROTO "}(" TEXT("\1", "a") T TEXT("\1", "b") "]" T "au."), "a b.0");
    check_names(
        ACCEPT(PROTO "}(" TEXT("\3", "ema") "}" TEXT("\1", "w") T "s" TEXT("\3", "net") NET "u."),
        "ema.w net.w:p");
    check_names(ACCEPT(PROTO NET "."), "w:p");
    REFUSE(PROTO "N.", "plain pickle without tensors");
    REFUSE(PROTO "}(" TEXT("\3", "ema") OBJECT("N") TEXT("\3", "net") OBJECT("}") "u.",
           "plain pickle without tensors");
    check_names(ACCEPT(PROTO "}(" TEXT("\3", "ema") OBJECT("N") TEXT("\3", "net") NET "u."),
                "net.w:a");
    check_names(ACCEPT(PROTO "}(" TEXT("\3", "ema") OBJECT("N") TEXT("\3", "ema") NET "u."),
                "ema.w:p"); /* the last one is used */
    REFUSE(PROTO T ".N", "1 bytes behind its end");
    REFUSE(PROTO T "..", "1 bytes behind its end");
    REFUSE(PROTO LEGACY_STORAGE ".", "persistent id where none is expected");
    REFUSE(PROTO "}" TEXT("\1", "w") T
           "s" TEXT("\1", "x") "cos\nsystem\n" TEXT("\2", "ls") "\x85Rs.",
           "'os.system'");
}

static void objects_are_as_edm2_saves_them(void **state)
{
    (void)state;
    static const char reason[] = "and a dict as state";
    REFUSE(PROTO PERSIST ")R.", "one dict that describes the object");
    REFUSE(PROTO PERSIST "]\x85R.", "one dict that describes the object");
    REFUSE(PROTO PERSIST "}}\x86R.", "one dict that describes the object");
    REFUSE(PROTO PERSIST "}\x85R.", reason);
    REFUSE(PROTO PERSIST "}(" META(TEXT("\4", "func"), "K\6", SOURCE, "}") "u\x85R.", reason);
    REFUSE(PROTO PERSIST "}(" META("K\5", "K\6", SOURCE, "}") "u\x85R.", reason);
    REFUSE(PROTO PERSIST "}(" META(TYPE, "K\6", "C\4pass", "}") "u\x85R.", reason);
    REFUSE(PROTO PERSIST "}(" META(TYPE, "K\6", SOURCE, "]") "u\x85R.", reason);
    REFUSE(PROTO PERSIST "}(" META(TYPE, "K\6", SOURCE, "}" TEXT("\5", "state") "]") "u\x85R.",
           reason); /* the last key is used */
    REFUSE(PROTO PERSIST "}(" META(TYPE, "K\5", SOURCE, "}") "u\x85R.", "version 6");
    REFUSE(PROTO PERSIST "}(" META(TYPE, "\x88", SOURCE, "}") "u\x85R.", "version 6");
    REFUSE(PROTO PERSIST ")\x81.", "no class");
    REFUSE(PROTO OBJECT("}") "}b.", "builds a module twice");
}

static void modules_are_as_torch_builds_them(void **state)
{
    (void)state;
    REFUSE(PROTO OBJECT(STATE("}" TEXT("\1", "w") T "s", "}", "]", "}")) ".", "is no set");
    REFUSE(PROTO OBJECT(STATE("]", "}", NO_SET, "}")) ".",
           "expected a dict of a module's _parameters");
    REFUSE(PROTO OBJECT(STATE("}" TEXT("\1", "w") "]" T "as", "}", NO_SET, "}")) ".",
           "no named tensor");
    REFUSE(
        PROTO OBJECT(STATE("}" TEXT("\1", "w") T "s", "}" TEXT("\1", "w") T "s", NO_SET, "}")) ".",
        "tensor 'w': two tensors have this name");
    check_names(ACCEPT(PROTO OBJECT("}(" TEXT("\x0B", "_parameters") "}" TEXT(
                    "\x0B", "_parameters") "}" TEXT("\1", "w") T "su") "."),
                "w:p");
    REFUSE(PROTO OBJECT("}" TEXT("\x08", "_modules") "}\x94" TEXT("\1", "m") "h\0ss") ".",
           "holds itself");
}

#define STEP(items) "}(" TEXT("\1", "n") "K\1" items "u"

/* Tensors outside parameters, buffers and children, listed after those of a state_dict. */
static void tensors_in_attributes_are_listed_last(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO "}(" TEXT("\4", "loss")
                           OBJECT(STEP(TEXT("\5", "table") T TEXT("\4", "more") "]" T "a"))
                               TEXT("\3", "ema") NET "u."),
                "ema.w:p loss.table:a loss.more.0:a");
    /* of a module, at any depth, without a second listing of its own parameters */
    check_names(
        ACCEPT(PROTO "}" TEXT("\3", "ema") OBJECT(
            "}(" TEXT("\x0B", "_parameters") "}" TEXT("\1", "w") T
            "\x94s" TEXT("\1", "f") "]h\0a" TEXT("\1", "g") "]h\0a" T "a" TEXT(
                "\x08", "_modules") "}" TEXT("\1", "c") LINEAR(STEP(TEXT("\1", "a") T)) "su") "s."),
        "ema.w:p ema.c.a:a ema.g.1:a");
    /* of no module, and of a module that is not the model */
    check_names(ACCEPT(PROTO OBJECT(STEP(TEXT("\1", "a") T)) "."), "a:a");
    check_names(
        ACCEPT(PROTO "}(" TEXT("\1", "x") OBJECT(STEP(TEXT("\1", "a") T)) TEXT("\1", "w") T "u."),
        "w x.a:a");
    /* other types under the names of members are attributes */
    check_names(ACCEPT(PROTO "}(" TEXT("\4", "loss")
                           OBJECT("}(" TEXT("\x0B", "_parameters") "}" TEXT(
                               "\1", "k") "]" T
                                          "as" TEXT("\x1B", "_non_persistent_buffers_set") "]" TEXT(
                                              "\x08", "_buffers") "}" TEXT("\1", "b") T "su")
                               TEXT("\3", "ema") NET "u."),
                "ema.w:p loss.k.0:a loss.b:a");
}

/* An attribute of a module may refer to the module, and lists in it may refer to themselves. */
static void attributes_may_refer_to_their_owner(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO "ctorch.nn.modules.linear\nLinear\n)\x81\x94}(" TEXT(
                    "\x0B", "_parameters") "}" TEXT("\1", "w") T
                       "s" TEXT("\5", "owner") "h\0" TEXT("\4", "list") "]\x94(h\0h\1" T "e" TEXT(
                           "\x08", "_modules") "}" TEXT("\1", "c")
                           LINEAR(STEP(TEXT("\2", "up") "h\0" TEXT("\1", "a") T)) "sub."),
                "w:p c.a:a list.2:a");
}

/* Lists in an attribute are followed to 200 levels. Then a warning reports the limit. */
static void deep_attributes_are_not_followed(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_program(&file,
                SPAN(PROTO PERSIST "}(" TEXT("\4", "type") TYPE TEXT("\7", "version") "K\6" TEXT(
                    "\x0A", "module_src") SOURCE TEXT("\x0A", "class_name") TEXT("\3", "Net")
                         TEXT("\5", "state") "}(" TEXT("\x0B", "_parameters") "}" TEXT("\1", "w") T
                     "s" TEXT("\1", "a") T));
    for (int i = 0; i < 300; i++)
        put_text(&file, "\x85");
    put_text(&file, "uu\x85R.");
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 1);
    assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "nested deeper than 200"));
    check_names(checkpoint, "w:p");
    phema_strbuf_clear(&file);
}

static void refuse_inner(const struct legacy_file *inner, const char *reason)
{
    struct phema_strbuf file = {0};
    put_text(&file, PROTO);
    put_tensor(&file, inner);
    put_text(&file, ".");
    assert_refused(file.data, file.size, reason);
    phema_strbuf_clear(&file);
}

/* One part of the nested file differs. */
static void refuse_part(int part, struct phema_span bytes, const char *reason)
{
    struct legacy_file inner = legacy_storage;
    inner.parts[part] = bytes;
    refuse_inner(&inner, reason);
}

static void storages_inside_are_whole_files(void **state)
{
    (void)state;
    refuse_part(LEGACY_MAGIC, SPAN("\x80\x02K\1."), "magic number of torch");
    refuse_part(LEGACY_MAGIC, SPAN("PK\3\4"), "at byte 73: magic number: is no pickle");
    refuse_part(LEGACY_VERSION, SPAN("\x80\x02K\1."), "protocol version 1001");
    refuse_part(LEGACY_SYSTEM, SPAN("\x80\x02}X\x0D\0\0\0little_endian\x89s."), "big-endian");
    refuse_part(LEGACY_OBJECT, SPAN("\x80\x02N."), "listed, and no tensor names it");
    refuse_part(LEGACY_OBJECT, SPAN("\x80\x02" LEGACY_STORAGE "\x85."),
                "one storage as its object");
    refuse_part(LEGACY_OBJECT,
                SPAN("\x80\x02" REBUILD "(" LEGACY_STORAGE "K\0K\4\x85K\1\x85\x89NtR."),
                "one storage as its object");
    refuse_part(LEGACY_OBJECT, SPAN("\x80\x02" LOAD "C\1x\x85R."), "is not read here");
    refuse_part(LEGACY_OBJECT, SPAN("\x80\x02" OBJECT("}") "."), "listed, and no tensor names it");
    refuse_part(LEGACY_KEYS, SPAN("\x80\x02]."), "not in the list of storages");
    refuse_part(LEGACY_DATA,
                SPAN("\4\0\0\0\0\0\0\0"
                     "abcdefg"),
                "expected 8 bytes of data, found 7");
    refuse_part(LEGACY_DATA,
                SPAN("\5\0\0\0\0\0\0\0"
                     "abcdefghij"),
                "found a length of 5");
    refuse_part(LEGACY_DATA,
                SPAN("\4\0\0\0\0\0\0\0"
                     "abcdefghi"),
                "1 bytes behind its storage");
    struct legacy_file two = legacy_storage;
    two.parts[LEGACY_OBJECT] = SPAN("\x80\x02(" TEXT("\7", "storage") "ctorch\nHalfStorage\n" TEXT(
        "\1", "j") TEXT("\3", "cpu") "K\0NtQ0" LEGACY_STORAGE ".");
    two.parts[LEGACY_KEYS] = SPAN("\x80\x02](" TEXT("\1", "j") TEXT("\1", "k") "e.");
    two.parts[LEGACY_DATA] = SPAN("\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
                                  "abcdefgh");
    refuse_inner(&two, "one storage as its object");
    REFUSE(PROTO LOAD "C\0\x85R.", "magic number: is no pickle");
    REFUSE(PROTO LOAD TEXT("\1", "x") "\x85R.", "expected bytes");
    REFUSE(PROTO LOAD ")R.", "expected bytes");
    REFUSE(PROTO LOAD "0N.", "without tensors"); /* named but not called, so harmless */
}

/* A zip has records for storages, so storages inside its pickle are refused. */
static void zips_have_no_storages_inside(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    struct phema_strbuf file = {0};
    put_program(&pickle, SPAN("\x80\x02" T "."));
    put_torch(&file, pickle.data, pickle.size, 8);
    assert_refused(file.data, file.size, "is not read here");
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
}

/* One nested file and a million calls that load it: the second call is refused. */
static void bytes_are_loaded_once(void **state)
{
    (void)state;
    struct phema_strbuf bytes = {0};
    struct phema_strbuf file = {0};
    put_legacy(&bytes, &legacy_storage);
    put_text(&file, PROTO LOAD "\x94");
    put_bytes(&file, &bytes);
    put(&file, "\x85\x94(", 3);
    for (int i = 0; i < 1000000; i++)
        put(&file, "h\0h\1R", 5);
    put_text(&file, "t.");
    assert_refused(file.data, file.size, "loaded twice");
    phema_strbuf_clear(&file);

    /* also refused out of order: the earlier bytes after the later ones */
    put_text(&file, PROTO LOAD "\x94");
    put_bytes(&file, &bytes);
    put_text(&file, "\x85\x94");
    put(&file, "h\0", 2);
    put_bytes(&file, &bytes);
    put(&file, "\x85R0R.", 5);
    assert_refused(file.data, file.size, "loaded twice, or out of order");
    phema_strbuf_clear(&file);
    phema_strbuf_clear(&bytes);
}

/* 30 modules, each ten times a child of the next one. */
static void shared_modules_do_not_unfold_without_end(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_program(&file, SPAN(PROTO "(" NET "\x94"));
    for (unsigned level = 0; level < 30; level++) {
        static const char before[] = PERSIST "}(";
        put(&file, before, sizeof(before) - 1);
        static const char open[] = META(TYPE, "K\6", SOURCE, "}" TEXT("\x08", "_modules") "}(");
        put(&file, open, sizeof(open) - 1);
        for (int i = 0; i < 10; i++) {
            put(&file, "X\1\0\0\0", 5);
            put_int(&file, (unsigned)('a' + i), 1);
            put_text(&file, "h");
            put_int(&file, level, 1);
        }
        put_text(&file, "usu\x85R\x94");
    }
    put_text(&file, "t.");
    assert_refused(file.data, file.size, "many times the file");
    phema_strbuf_clear(&file);
}

static void nesting_ends(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_text(&file, PROTO);
    static const char open[] =
        PERSIST "}(" META(TYPE, "K\6", SOURCE, "}" TEXT("\x08", "_modules") "}" TEXT("\1", "m"));
    for (int i = 0; i < 10000; i++)
        put(&file, open, sizeof(open) - 1);
    put_text(&file, "N");
    for (int i = 0; i < 10000; i++)
        put_text(&file, "ssu\x85R");
    put_text(&file, ".");
    assert_refused(file.data, file.size, "nested deeper than 200");
    phema_strbuf_clear(&file);
}

/* A large file with a small pickle that copies a list repeatedly. The hole, after the pickle or
 * inside its bytes, uses no disk space and must not raise the limit on memory. */
static void holes_buy_no_memory(void **state)
{
    (void)state;
    const uint64_t hole = (uint64_t)1 << 36;
    struct phema_strbuf copies = {0};
    put(&copies, "0ccollections\nOrderedDict\n\x94](", strlen("0ccollections\nOrderedDict\n") + 3);
    for (int i = 0; i < 1000; i++)
        put_text(&copies, "NN\x86");
    put_text(&copies, "e\x85\x94(");
    for (int i = 0; i < 10000; i++)
        put(&copies, "h\0h\1R0", 6);
    put_text(&copies, "1.");
    for (int is_inside = 0; is_inside < 2; is_inside++) {
        struct phema_strbuf head = {0};
        put_text(&head, PROTO "\x8E");
        put_int(&head, is_inside ? hole : 0, 8);
        const char *path = as_file(head.data, head.size);
        size_t at = head.size + (is_inside ? hole : 0);
        phema_strbuf_clear(&head);
        int descriptor = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(descriptor >= 0);
        assert_int_equal(ftruncate(descriptor, (off_t)(2 * hole)), 0);
        assert_int_equal(pwrite(descriptor, copies.data, copies.size, (off_t)at), copies.size);
        assert_int_equal(close(descriptor), 0);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_fails(phema_checkpoint_open(&checkpoint, path, NULL, &err), PHEMA_ERR_FILE, &err,
                     "times its own size in memory");
    }
    phema_strbuf_clear(&copies);
}

/* A file from EDM2's reconstruct_phema.py has the values that EDM2 itself loads from it. */
static void reconstructions_hold_their_values(void **state)
{
    (void)state;
    static const char *const stems[] = {"0.070", "0.120", "0.200"};
    for (size_t i = 0; i < ARRAY_LEN(stems); i++) {
        struct phema_checkpoint *both[2] = {NULL, NULL};
        for (size_t which = 0; which < 2; which++) {
            char name[128];
            (void)snprintf(name, sizeof(name), "edm2/reconstructed/phema-0000016-%s.%s", stems[i],
                           which ? "safetensors" : "pkl");
            char *path = support_fixture(name);
            struct phema_error err = {0};
            assert_ok(phema_checkpoint_open(&both[which], path, NULL, &err), &err);
            free(path);
        }
        assert_int_equal(phema_checkpoint_n_tensors(both[0]), 8);
        assert_int_equal(phema_checkpoint_n_tensors(both[1]), 8);
        for (size_t t = 0; t < 8; t++) {
            const struct phema_tensor *read = &phema_checkpoint_tensors(both[0])[t];
            assert_memory_equal(read->name, "ema.", 4);
            const struct phema_tensor *wanted =
                phema_checkpoint_find(both[1], read->name + 4, read->name_size - 4);
            assert_non_null(wanted);
            assert_int_equal(read->dtype, wanted->dtype);
            assert_int_equal(read->size_bytes, wanted->size_bytes);
            assert_memory_equal(phema_tensor_start(both[0], read),
                                phema_tensor_start(both[1], wanted), read->size_bytes);
        }
        phema_checkpoint_close(both[0]);
        phema_checkpoint_close(both[1]);
    }
}

/* tests/growth counts the work of opening them. */
static void many_tensors_are_listed(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_text(&file, PROTO "](");
    for (int i = 0; i < 20000; i++)
        put_tensor(&file, &legacy_storage);
    put_text(&file, "e.");
    const char *path = as_file(file.data, file.size);
    phema_strbuf_clear(&file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 20000);
    phema_checkpoint_close(checkpoint);
}

/* Slow: thousands of files; the seeds of the fuzzer reach the same readers. */
static void slow_no_change_of_a_byte_crashes(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_program(&file, SPAN(PROTO "}" TEXT("\3", "ema")
                                OBJECT(STATE("}" TEXT("\1", "w") T "s", "}" TEXT("\1", "b") T "s",
                                             NO_SET, "}" TEXT("\1", "c") NET "s")) "s."));
    (void)survive((const uint8_t *)file.data, file.size, 0, file.size, 7);
    phema_strbuf_clear(&file);

    char *path = support_fixture("edm2/snapshots/network-snapshot-0000004-0.050.pkl");
    size_t size = 0;
    uint8_t *bytes = support_read(path, &size);
    (void)survive(bytes, size, 2780, size, 127); /* the source text precedes this range */
    free(bytes);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_network_lists_as_its_state_dict),
    cmocka_unit_test(other_pickles_list_their_tensors),
    cmocka_unit_test(objects_are_as_edm2_saves_them),
    cmocka_unit_test(modules_are_as_torch_builds_them),
    cmocka_unit_test(tensors_in_attributes_are_listed_last),
    cmocka_unit_test(attributes_may_refer_to_their_owner),
    cmocka_unit_test(deep_attributes_are_not_followed),
    cmocka_unit_test(storages_inside_are_whole_files),
    cmocka_unit_test(zips_have_no_storages_inside),
    cmocka_unit_test(bytes_are_loaded_once),
    cmocka_unit_test(shared_modules_do_not_unfold_without_end),
    cmocka_unit_test(nesting_ends),
    cmocka_unit_test(holes_buy_no_memory),
    cmocka_unit_test(reconstructions_hold_their_values),
    cmocka_unit_test(many_tensors_are_listed),
    cmocka_unit_test(slow_no_change_of_a_byte_crashes),
};
TEST_GROUP(tests)
