// SPDX-License-Identifier: Apache-2.0
/* test_layout.c - truncated and wrapped texts, labels of marks, and the legend: nothing overlaps or
 * leaves the picture. */
#include "support.h"

#include <string.h>

#include "layout.h"

static void texts_are_truncated_between_characters(void **state)
{
    (void)state;
    char fitted[FITTED_SIZE];
    assert_string_equal(text_fit(fitted, "short", 12, false, 100), "short");
    double width = text_width("a long te...", 12, false);
    assert_string_equal(text_fit(fitted, "a long text", 12, false, width - 20), "a lon...");
    /* characters of two bytes are never split */
    assert_string_equal(
        text_fit(fitted, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 10, false, 40),
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4...");
    char text[2000];
    memset(text, 'i', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(strlen(text_fit(fitted, text, 1, false, 1e6)), FITTED_SIZE - 1);
    assert_string_equal(text_fit(fitted, text, 12, false, 0), "...");
}

static void notes_are_wrapped_between_words(void **state)
{
    (void)state;
    char line[FITTED_SIZE];
    const char *rest = "metric walk; predicted error 1.1e-04; gain 0.9";
    double width = text_width("metric walk; predicted error", SIZE_SMALL, false) + 1;
    assert_true(layout_line(line, &rest, width));
    assert_string_equal(line, "metric walk; predicted error");
    assert_true(layout_line(line, &rest, width));
    assert_string_equal(line, "1.1e-04; gain 0.9");
    assert_false(layout_line(line, &rest, width));
    rest = "onewordthatistoolong";
    assert_true(layout_line(line, &rest, 60));
    assert_string_equal(line + strlen(line) - 3, "...");
    assert_false(layout_line(line, &rest, 60));
}

static struct phema_picture *new_picture(void)
{
    struct phema_picture *picture = picture_new("a picture");
    assert_non_null(picture);
    struct panel *panel = picture_panel(picture, &(struct panel){.name = "panel", .height = 200});
    assert_non_null(panel);
    panel->x = (struct axis){.label = "x", .max = 0.3};
    panel->y = (struct axis){.label = "y", .max = 1};
    return picture;
}

static void labels_of_marks_do_not_overlap(void **state)
{
    (void)state;
    struct phema_picture *picture = new_picture();
    struct panel *panel = picture->panels;
    static const double at[] = {0.05, 0.06, 0.07, 0.08, 0.2, 0.289, 0.3};
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        panel_mark(picture, panel,
                   &(struct mark){.is_vertical = true,
                                  .at = at[i],
                                  .label = picture_text(picture, "width %g", at[i])});
    struct layout layout = layout_begin(picture);
    for (const struct mark *a = panel->marks; a; a = a->next) {
        double x = layout_mark_x(panel, a, &layout);
        double half = text_width(a->label, SIZE_SMALL, false) / 2;
        assert_true(x - half >= layout.left && x + half <= picture->width);
        for (const struct mark *b = a->next; b; b = b->next) {
            double apart = layout_mark_x(panel, b, &layout) - x;
            double needed = half + text_width(b->label, SIZE_SMALL, false) / 2;
            bool is_same_row =
                layout_mark_row(panel, a, &layout) == layout_mark_row(panel, b, &layout);
            assert_true(!is_same_row || apart > needed);
        }
    }
    assert_int_equal(layout_mark_row(panel, panel->marks, &layout), 0);
    assert_int_equal(layout_mark_row(panel, panel->marks->next, &layout), 1);
    phema_picture_free(picture);
}

static void the_legend_flows_into_rows(void **state)
{
    (void)state;
    struct phema_picture *picture = new_picture();
    for (int i = 0; i < 12; i++) {
        struct series *series =
            panel_series(picture, picture->panels, &(const struct series){.name = "line", .n = 2});
        assert_non_null(series);
        series->legend = picture_text(picture, "what entry %d stands for", i / 2);
    }
    struct legend legend = legend_begin(picture);
    const struct series *series;
    struct point at, before = {0, 0};
    size_t n = 0;
    while (legend_next(&legend, &series, &at)) {
        double end = at.x + LEGEND_SAMPLE + 6 + text_width(series->legend, SIZE_LABEL, false);
        assert_true(end <= picture->width);
        assert_true(at.y > before.y || at.x > before.x);
        before = (struct point){end, at.y};
        n++;
    }
    assert_int_equal(n, 6); /* each text once */
    struct layout layout = layout_begin(picture);
    struct panel_layout place = layout_next(&layout, picture->panels);
    assert_true(place.box.y > before.y);
    assert_true(picture_height(picture) > place.label);
    phema_picture_free(picture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_are_truncated_between_characters),
    cmocka_unit_test(notes_are_wrapped_between_words),
    cmocka_unit_test(labels_of_marks_do_not_overlap),
    cmocka_unit_test(the_legend_flows_into_rows),
};
TEST_GROUP(tests)
