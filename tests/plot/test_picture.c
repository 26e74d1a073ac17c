// SPDX-License-Identifier: Apache-2.0
/* test_picture.c - extreme inputs in every format: no picture contains NaN or infinity. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/plot.h"

static char *write_as(const struct phema_picture *picture, enum phema_picture_format format)
{
    struct phema_strbuf text = {0};
    struct phema_error err = {0};
    assert_ok(phema_picture_write(&text, picture, format, &err), &err);
    assert_true(text.size > 0);
    char *copy = strndup(text.data, text.size);
    phema_strbuf_clear(&text);
    assert_non_null(copy);
    return copy;
}

static void assert_svg(const struct phema_picture *picture, const char *start)
{
    char *svg = write_as(picture, PHEMA_PICTURE_SVG);
    assert_memory_equal(svg, start, strlen(start));
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    free(svg);
}

#define SVG_START "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""

static void assert_drawn(struct phema_picture *picture)
{
    assert_svg(picture, SVG_START "800\"");
    free(write_as(picture, PHEMA_PICTURE_PNG));
    free(write_as(picture, PHEMA_PICTURE_PDF));
    char *csv = write_as(picture, PHEMA_PICTURE_CSV);
    assert_memory_equal(csv, "panel,series,x,y\n", 17);
    free(csv);
    phema_picture_make_narrow(picture);
    assert_svg(picture, SVG_START "380\"");
    phema_picture_free(picture);
}

static void draw_targets(const struct phema_profile *snapshots, const double *weights, size_t n,
                         const struct phema_profile *target)
{
    const char *const kinds[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    assert_true(n <= ARRAY_LEN(kinds));
    struct phema_plot_series series = {
        .title = "<&>", .unit = "steps", .snapshots = snapshots, .kinds = kinds, .n = n};
    struct phema_plot_target targets[] = {
        {.title = "one", .mix = {.parts = target, .n_parts = 1}, .weights = weights}};
    struct phema_picture *picture = NULL;
    struct phema_error err = {0};
    assert_ok(phema_plot_weights(&picture, &series, targets, 1, &err), &err);
    assert_drawn(picture);
    assert_ok(phema_plot_profiles(&picture, &series, targets, 1, &err), &err);
    assert_drawn(picture);
}

static void weights_of_any_size_are_drawn(void **state)
{
    (void)state;
    const struct phema_profile snapshots[] = {{.gamma = 7, .t = 10},
                                              {.gamma = 17, .t = 10},
                                              {.shape = PHEMA_SHAPE_RAW, .t = 20},
                                              {.gamma = 7, .t = 0x1p52}};
    static const double weights[][4] = {{0, 0, 0, 0},
                                        {1e308, -1e308, 1e308, -1e308},
                                        {1e-308, 0, 0, 0},
                                        {0.5, -0.5, 1, 0},
                                        {(double)INFINITY, 0, 0, (double)NAN}};
    for (size_t i = 0; i < ARRAY_LEN(weights); i++)
        for (size_t n = 1; n <= ARRAY_LEN(snapshots); n++)
            draw_targets(snapshots, weights[i], n, &snapshots[0]);
}

static void as_many_kinds_as_snapshots_are_drawn(void **state)
{
    (void)state;
    struct phema_profile snapshots[8];
    double weights[8];
    for (size_t i = 0; i < 8; i++) {
        snapshots[i] = (struct phema_profile){.gamma = (double)i, .t = 1e15 + (double)i};
        weights[i] = 1.0 / 8;
    }
    draw_targets(snapshots, weights, 8, &snapshots[7]);
}

static void errors_of_any_size_are_drawn(void **state)
{
    (void)state;
    static const struct phema_plot_error widths[] = {
        {0.05, 0, 0, (double)NAN, (double)NAN, true},
        {0.10, 1e-320, (double)NAN, 1e-3, 1e300, true},
        {0.15, 1e-3, 1e-30, 0, (double)INFINITY, false}};
    static const double inputs[] = {0.01, 0.0101, 0.0102, 0.0103, 0.0104, 0.0105, 0.3};
    for (size_t n = 0; n <= ARRAY_LEN(widths); n++) {
        struct phema_plot_errors errors = {
            .title = "", .widths = widths, .n = n, .inputs = inputs, .n_inputs = 7};
        struct phema_picture *picture = NULL;
        struct phema_error err = {0};
        assert_ok(phema_plot_errors(&picture, &errors, &err), &err);
        assert_drawn(picture);
    }
}

static void draw_sweep(const char *csv)
{
    struct phema_plot_sweep sweep = {.title = "sweep", .csv = {(const uint8_t *)csv, strlen(csv)}};
    struct phema_picture *picture = NULL;
    struct phema_sweep_facts facts;
    struct phema_error err = {0};
    assert_ok(phema_plot_sweep(&picture, &facts, &sweep, &err), &err);
    assert_drawn(picture);
}

static void scores_of_any_size_are_drawn(void **state)
{
    (void)state;
    draw_sweep("0.1,0\n");
    draw_sweep("0.1,0\n0.1,0\n");
    draw_sweep("0.1,1e100\n0.2,-1e100\n");
    draw_sweep("0.1,1\n0.2,1.0000000000000002\n");
    draw_sweep("1e-300,1\n0.3,1e-300\n");
    draw_sweep("0.1,-5e-324\n");
}

static void stages_of_any_size_are_drawn(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"stage\":\"\",\"elapsed_seconds\":1e308,\"rss_anon\":{\"peak\":0,\"now\":0}}\n"
        "{\"stage\":\"a stage with a name that is much longer than the space below its bar\","
        "\"elapsed_seconds\":-1,\"device\":{\"peak\":9223372036854775807,\"now\":1}}\n"
        "{\"stage\":\"\\u0007\\u00e4<\",\"elapsed_seconds\":0}\n";
    static const uint64_t caps[] = {0, 1, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        struct phema_picture *picture = NULL;
        struct phema_error err = {0};
        struct phema_span span = {(const uint8_t *)lines, sizeof(lines) - 1};
        assert_ok(phema_plot_memory(&picture, "memory", span, caps[i], &err), &err);
        assert_drawn(picture);
    }
}

static void the_extension_selects_the_format(void **state)
{
    (void)state;
    struct phema_error err = {0};
    enum phema_picture_format format = PHEMA_PICTURE_CSV;
    assert_ok(phema_picture_format(&format, "a.b/c.pdf", &err), &err);
    assert_int_equal(format, PHEMA_PICTURE_PDF);
    static const char *const others[] = {"", "svg", ".svg", "a.SVG", "a.svg.gz", "a.jpeg"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_fails(phema_picture_format(&format, others[i], &err), PHEMA_ERR_USAGE, &err,
                     "expected a name that ends in .svg, .png, .pdf or .csv");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(weights_of_any_size_are_drawn),
    cmocka_unit_test(as_many_kinds_as_snapshots_are_drawn),
    cmocka_unit_test(errors_of_any_size_are_drawn),
    cmocka_unit_test(scores_of_any_size_are_drawn),
    cmocka_unit_test(stages_of_any_size_are_drawn),
    cmocka_unit_test(the_extension_selects_the_format),
};
TEST_GROUP(tests)
