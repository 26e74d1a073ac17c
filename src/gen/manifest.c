// SPDX-License-Identifier: Apache-2.0
/* manifest.c - see manifest.h; docs/layouts.md has the format. */
#include "manifest.h"

#include <inttypes.h>
#include <string.h>

#include "phema/json.h"

bool gen_needs_manifest(const struct gen_request *request)
{
    for (size_t k = 0; k < request->n_snapshot_kinds; k++)
        if (request->kinds[k].profile.shape != PHEMA_SHAPE_POWER)
            return true;
    return false;
}

/* Rules of libraries are tables inside, but have a text that says them. */
bool gen_has_table(const struct gen_kind *kind)
{
    return kind->text && strncmp(kind->text, "table:", 6) == 0;
}

void gen_put_file_name(struct phema_strbuf *text, const struct gen_item *item)
{
    phema_strbuf_printf(text, "%s-%07" PRIu64 "-%s.safetensors",
                        item->is_truth ? "truth" : "snapshot", item->time, item->kind->name);
}

static void write_profile(struct phema_json_out *out, const struct gen_kind *kind)
{
    bool is_power = kind->profile.shape == PHEMA_SHAPE_POWER;
    if (!is_power && !gen_has_table(kind)) {
        phema_json_out_string(out, "profile", kind->text);
        return;
    }
    phema_json_out_open(out, "profile", '{');
    phema_json_out_string(out, "kind", is_power ? "power" : "table");
    if (!is_power)
        phema_json_out_string(out, "file", kind->name);
    else if (kind->is_by_gamma)
        phema_json_out_number(out, "gamma", kind->profile.gamma);
    else
        phema_json_out_number(out, "sigma_rel", kind->sigma_rel);
    if (is_power && kind->profile.update_every > 1 && !kind->hides_update_every)
        phema_json_out_u64(out, "update_every", kind->profile.update_every);
    phema_json_out_close(out, '}');
}

void gen_write_manifest(struct phema_strbuf *text, const struct gen_request *request)
{
    struct phema_json_out out = {.text = text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_string(&out, "unit", "steps");
    phema_json_out_open(&out, "snapshots", '[');
    for (size_t i = 0; i < request->n_items; i++) {
        const struct gen_item *item = &request->items[i];
        if (item->is_truth)
            continue;
        struct phema_strbuf name = {0};
        gen_put_file_name(&name, item);
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_string(&out, "file", name.data ? name.data : "");
        phema_json_out_u64(&out, "time", item->time);
        write_profile(&out, item->kind);
        phema_json_out_close(&out, '}');
        text->is_failed = text->is_failed || name.is_failed;
        phema_strbuf_clear(&name);
    }
    phema_json_out_close(&out, ']');
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

void gen_write_table(struct phema_strbuf *text, const struct phema_betas *betas)
{
    phema_strbuf_puts(text, "# step beta\n");
    for (size_t i = 0; i < betas->n; i++)
        phema_strbuf_printf(text, "%" PRIu64 " %.17g\n", betas->steps[i], betas->betas[i]);
}
