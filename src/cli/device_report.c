// SPDX-License-Identifier: Apache-2.0
/* device_report.c - see device_report.h. */
#include "device_report.h"

#include "series_options.h"

void device_report(const struct cli_common *common, const struct phema_device_choice *choice,
                   bool is_asked)
{
    struct phema_name_buffer size;
    if (common->is_quiet)
        return;
    if (choice->is_device)
        cli_say("added up on %s, with %s of %s memory%s%s", choice->shown,
                phema_size_format(&size, choice->device_bytes),
                choice->n_devices > 1 ? "their" : "its", choice->why[0] ? ": " : "", choice->why);
    else if (choice->why[0] && (is_asked || common->is_verbose))
        cli_say("added up on the CPU: %s", choice->why);
    if (choice->note[0])
        cli_say("%s", choice->note);
}

void device_report_place(struct phema_strbuf *out, const struct phema_device_choice *choice)
{
    phema_strbuf_printf(out, "on %s", choice->is_device ? choice->shown : "the CPU");
}

void device_report_plan(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    const struct phema_device_choice *choice = &forecast->device;
    struct phema_name_buffer size;
    if (!choice->is_device)
        return;
    phema_strbuf_printf(out, "\ngpu       %s of %s memory, in tiles of %zu elements",
                        phema_size_format(&size, choice->device_bytes / choice->n_devices),
                        choice->n_devices > 1 ? "each device's" : "its", forecast->tile_elems);
    if (choice->n_tile_passes > 1)
        phema_strbuf_printf(out, ", each with %llu passes over the targets",
                            (unsigned long long)choice->n_tile_passes);
}

void device_report_json(struct phema_json_out *out, const struct phema_forecast *forecast)
{
    const struct phema_device_choice *choice = &forecast->device;
    phema_json_out_u64(out, "gpu_bytes", choice->is_device ? choice->device_bytes : 0);
    phema_json_out_string(out, "device", choice->shown);
    if (choice->why[0])
        phema_json_out_string(out, "device_reason", choice->why);
    phema_json_out_u64(out, "tile_elements", forecast->tile_elems);
    if (choice->is_device)
        phema_json_out_u64(out, "gpu_tile_passes", choice->n_tile_passes);
    if (choice->is_device)
        phema_json_out_bool(out, "gpu_rate_assumed", forecast->is_rate_assumed);
}
