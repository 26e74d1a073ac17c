// SPDX-License-Identifier: Apache-2.0
/* Inconsistent files in torch's format before 1.6. test_fixtures.c compares torch's own files with
 * torch's listings. */
#include "phema/formats.h"

#include "build.h"

#define TEXT(size, text) "X" size "\0\0\0" text
#define SPAN(literal)    ((struct phema_span)BYTES_OF(literal))
/* A tensor of n halves from the storage */
#define TENSOR(n)                                                                                  \
    "ctorch._utils\n_rebuild_tensor_v2\n(" LEGACY_STORAGE "K\0K" n "\x85K\1\x85\x89NtR"

static struct legacy_file with(int part, struct phema_span bytes)
{
    struct legacy_file file = legacy_storage;
    file.parts[LEGACY_OBJECT] = SPAN("\x80\x02}" TEXT("\1", "w") TENSOR("\4") "s.");
    file.parts[part] = bytes;
    return file;
}

static const struct phema_span data = BYTES_OF("\4\0\0\0\0\0\0\0"
                                               "abcdefgh");

static void refuse(int part, struct phema_span bytes, const char *reason)
{
    struct legacy_file file = with(part, bytes);
    struct phema_strbuf content = {0};
    put_legacy(&content, &file);
    assert_refused(content.data, content.size, reason);
    phema_strbuf_clear(&content);
}

#define REFUSE(part, literal, reason) refuse(part, SPAN(literal), reason)

static void accept(const struct legacy_file *file, const char *name, size_t offset)
{
    struct phema_strbuf content = {0};
    put_legacy(&content, file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, content.data, content.size, &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "torch-legacy");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), name ? 1 : 0);
    if (name) {
        const struct phema_tensor *tensor = phema_checkpoint_tensors(checkpoint);
        assert_string_equal(tensor->name, name);
        assert_int_equal(tensor->dtype, PHEMA_F16);
        assert_int_equal(tensor->offset, offset ? offset : content.size - 8);
        assert_memory_equal(phema_tensor_start(checkpoint, tensor), "abcdefgh", 8);
    }
    phema_checkpoint_close(checkpoint);
    phema_strbuf_clear(&content);
}

static void a_plain_file_opens(void **state)
{
    (void)state;
    struct legacy_file file = with(LEGACY_DATA, data);
    accept(&file, "w", 0);
    /* a storage alone has no tensor to list */
    accept(&legacy_storage, NULL, 0);
    /* bytes after the last storage are ignored, as in torch */
    size_t head = 0;
    for (int i = 0; i < LEGACY_DATA; i++)
        head += file.parts[i].size;
    file = with(LEGACY_DATA, SPAN("\4\0\0\0\0\0\0\0"
                                  "abcdefghtail"));
    accept(&file, "w", head + 8);
    /* protocol 4 adds frames; the value matters, not the bytes */
    file = with(LEGACY_MAGIC, SPAN("\x80\x04\x95\x0D\0\0\0\0\0\0\0\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20"
                                   "\x6A\xA8\x50\x19."));
    accept(&file, "w", 0);
}

static void the_head_is_checked(void **state)
{
    (void)state;
    /* another magic number suggests another format, but the file does not have that one either */
    REFUSE(LEGACY_MAGIC, "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x1A.",
           "plain pickle");
    REFUSE(LEGACY_MAGIC, "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x85.",
           "does not begin with the magic number");
    REFUSE(LEGACY_MAGIC, "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19",
           "magic number: pickle byte 14: ");
    REFUSE(LEGACY_VERSION, "\x80\x02M\xE8\x03.", "protocol version 1001");
    REFUSE(LEGACY_VERSION, "\x80\x02\x88.", "protocol version 1001");
    REFUSE(LEGACY_VERSION, "\x80\x02h\0.", "gets memo entry 0 of 0");
    REFUSE(LEGACY_SYSTEM, "\x80\x02}X\x0D\0\0\0little_endian\x89s.", "big-endian");
    REFUSE(LEGACY_SYSTEM, "\x80\x02}.", "little_endian");
    REFUSE(LEGACY_SYSTEM, "\x80\x02].", "little_endian");
    REFUSE(LEGACY_SYSTEM, "\x80\x02}X\x0D\0\0\0little_endianK\1s.", "little_endian");
    REFUSE(LEGACY_SYSTEM, "\x80\x02}(X\x0D\0\0\0little_endian\x88X\x0D\0\0\0little_endian\x89u.",
           "big-endian"); /* the last one is used */
    REFUSE(LEGACY_SYSTEM, "\x80\x02" LEGACY_STORAGE ".", "persistent id where none");
}

static void each_pickle_has_its_own_memo(void **state)
{
    (void)state;
    struct legacy_file file = with(LEGACY_VERSION, SPAN("\x80\x02M\xE9\x03q\0."));
    accept(&file, "w", 0);
    file.parts[LEGACY_KEYS] = SPAN("\x80\x02h\0.");
    struct phema_strbuf content = {0};
    put_legacy(&content, &file);
    assert_refused(content.data, content.size, "list of storages: pickle byte 2: gets memo entry");
    phema_strbuf_clear(&content);
}

#define PID(fields) "\x80\x02(" TEXT("\7", "storage") "ctorch\nHalfStorage\n" fields "tQ."

static void persistent_ids_are_checked(void **state)
{
    (void)state;
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") TEXT("\3", "cpu") "K\4"), "length, None)");
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") TEXT("\3", "cpu") "K\4NN"), "length, None)");
    REFUSE(LEGACY_OBJECT, PID("K\1" TEXT("\3", "cpu") "K\4N"), "length, None)");
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") "NK\4N"), "length, None)");
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") TEXT("\3", "cpu") "J\xFF\xFF\xFF\xFFN"),
           "length, None)");
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") TEXT("\3", "cpu") "K\4" TEXT("\1", "v") "K\0K\4\x87"),
           "view of another");
    REFUSE(LEGACY_OBJECT,
           "\x80\x02(" TEXT("\6", "module") "ctorch.nn.modules.linear\nLinear\n" TEXT("\4", "a.py")
               TEXT("\4", "pass") "tQ.",
           "is listed, and no tensor names it"); /* the source is ignored */
    REFUSE(LEGACY_OBJECT,
           "\x80\x02" LEGACY_STORAGE
           "(" TEXT("\7", "storage") "ctorch\nHalfStorage\n" TEXT("\1", "k")
               TEXT("\3", "cpu") "K\5NtQ\x86.",
           "storage 'k': is named twice, with different");
    REFUSE(LEGACY_OBJECT, PID(TEXT("\1", "k") TEXT("\3", "cpu") "\x8A\x08\0\0\0\0\0\0\0\x40N"),
           "storage 'k': expected 4611686018427387904 elements");
    REFUSE(LEGACY_OBJECT,
           "\x80\x02(" TEXT("\7", "storage") "ctorch\nDoubleStorage\n" TEXT("\1", "k")
               TEXT("\3", "cpu") "\x8A\x08\0\0\0\0\0\0\0\x40NtQ.",
           "overflow");
    REFUSE(LEGACY_OBJECT, "\x80\x02" TENSOR("\5") ".", "reaches element 4 of a storage of 4");
    REFUSE(LEGACY_OBJECT,
           "\x80\x02"
           "ctorch.storage\n_load_from_bytes\nC\1x\x85R.",
           "is not read here");
}

static void storages_and_list_must_agree(void **state)
{
    (void)state;
    REFUSE(LEGACY_KEYS, "\x80\x02}.", "expected a list of storages");
    REFUSE(LEGACY_KEYS, "\x80\x02X\1\0\0\0k\x85.", "expected a list of storages");
    REFUSE(LEGACY_KEYS, "\x80\x02].", "storage 'k': is named by a tensor, and not in the list");
    REFUSE(LEGACY_KEYS, "\x80\x02]K\1a.", "expected text as keys");
    REFUSE(LEGACY_KEYS, "\x80\x02]X\1\0\0\0ja.", "storage 'j': is listed, and no tensor");
    REFUSE(LEGACY_KEYS, "\x80\x02](X\1\0\0\0kX\1\0\0\0ke.", "storage 'k': is listed twice");
    REFUSE(LEGACY_KEYS, "\x80\x02](X\1\0\0\0kX\1\0\0\0je.", "storage 'j': is listed, and no");
    REFUSE(LEGACY_DATA, "", "storage 'k': the file ends before its length");
    REFUSE(LEGACY_DATA, "\4\0\0\0\0\0\0", "storage 'k': the file ends before its length");
    REFUSE(LEGACY_DATA, "\4\0\0\0\0\0\0\0", "expected 8 bytes of data, found 0");
    REFUSE(LEGACY_DATA,
           "\4\0\0\0\0\0\0\0"
           "abcdefg",
           "expected 8 bytes of data, found 7");
    REFUSE(LEGACY_DATA,
           "\3\0\0\0\0\0\0\0"
           "abcdefgh",
           "expected 4 elements of F16, found a length");
    REFUSE(LEGACY_DATA,
           "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
           "abcdefgh",
           "found a length of -1");
}

static void no_change_of_a_byte_crashes(void **state)
{
    (void)state;
    struct phema_strbuf content = {0};
    struct legacy_file file = with(LEGACY_DATA, data);
    put_legacy(&content, &file);
    size_t n_opened = survive((const uint8_t *)content.data, content.size, 0, content.size, 1);
    assert_true(n_opened > 2000); /* at least the 8 bytes of data may have any value */
    phema_strbuf_clear(&content);

    static const char *const fixtures[] = {"legacy/views.pt", "legacy/module_state_dict.pth",
                                           "old/torch113_legacy.pt"};
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        char *path = support_fixture(fixtures[i]);
        size_t size = 0;
        uint8_t *bytes = support_read(path, &size);
        (void)survive(bytes, size, 0, size, 51);
        free(bytes);
        free(path);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_plain_file_opens),           cmocka_unit_test(the_head_is_checked),
    cmocka_unit_test(each_pickle_has_its_own_memo), cmocka_unit_test(persistent_ids_are_checked),
    cmocka_unit_test(storages_and_list_must_agree), cmocka_unit_test(no_change_of_a_byte_crashes),
};
TEST_GROUP(tests)
