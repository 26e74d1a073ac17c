// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/formats.h"
#include "support.h"

static const char content[] = "\x38\0\0\0\0\0\0\0"
                              "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}   "
                              "abcd";

/* A file with another time of modification counts as changed, even if the bytes are the same. They
 * may have differed in between. */
static void a_file_changed_since_opening_is_named(void **state)
{
    (void)state;
    char *path = support_tmp_path("changing.safetensors");
    support_write(path, content, sizeof(content) - 1);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_ok(phema_checkpoint_check_unchanged(checkpoint, &err), &err);

    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_fails(phema_checkpoint_check_unchanged(checkpoint, &err), PHEMA_ERR_FILE, &err,
                 "changing.safetensors: the file changed while it was being read");

    support_write(path, content, sizeof(content) - 1);
    assert_int_equal(truncate(path, 20), 0);
    assert_fails(phema_checkpoint_check_unchanged(checkpoint, &err), PHEMA_ERR_FILE, &err,
                 "changing.safetensors: the file changed");
    assert_int_equal(unlink(path), 0);
    assert_fails(phema_checkpoint_check_unchanged(checkpoint, &err), PHEMA_ERR_FILE, &err,
                 "changing.safetensors");
    phema_checkpoint_close(checkpoint);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_changed_since_opening_is_named),
};
TEST_GROUP(tests)
