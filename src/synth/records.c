// SPDX-License-Identifier: Apache-2.0
/* records.c - what is told of a run, and of one that is predicted. */
#include "phema/synth.h"

#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_synth_result, member)

const struct phema_field phema_synth_result_fields[] = {
    FIELD(COUNT, IF_ABOVE_0, "part", part),
    FIELD(COUNT, IF_ABOVE_0, "parts", n_parts),
    FIELD(COUNT, ALWAYS, "read_bytes", read_bytes),
    FIELD(COUNT, ALWAYS, "written_bytes", written_bytes),
    FIELD(NUMBER, ALWAYS, "seconds", elapsed_s),
    FIELD(COUNT, ALWAYS, "peak_anonymous_bytes", peak_anonymous_bytes),
    FIELD(COUNT, ALWAYS, "peak_resident_bytes", peak_resident_bytes),
    FIELD(CHARS, ALWAYS, "device", device.name),
    FIELD(COUNT, IF_ABOVE_0, "gpu_bytes", device.gpu_bytes),
    FIELD(COUNT, ALWAYS, "nan", n_nan),
    FIELD(COUNT, ALWAYS, "inf", n_inf),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_forecast, member)

const struct phema_field phema_forecast_fields[] = {
    FIELD(COUNT, ALWAYS, "read_bytes", read_bytes),
    FIELD(COUNT, ALWAYS, "write_bytes", write_bytes),
    FIELD(BOOL, ALWAYS, "compressed", is_compressed),
    FIELD(COUNT, ALWAYS, "peak_ram_bytes", peak_ram_bytes),
    FIELD(NUMBER, ALWAYS, "seconds", seconds),
    FIELD(CHARS, ALWAYS, "device", device.name),
    FIELD(COUNT, ALWAYS, "tile_elements", tile_elems),
    FIELD(TEXT, ALWAYS, "io", io),
    FIELD(COUNT, ALWAYS, "passes", n_passes),
    FIELD(COUNT, ALWAYS, "targets_per_pass", targets_per_pass),
    FIELD(SMALL, ALWAYS, "threads", n_threads),
    FIELD(COUNT, ALWAYS, "averaged", n_averaged),
    FIELD(COUNT, ALWAYS, "copied", n_copied),
    FIELD(COUNT, ALWAYS, "cold_bytes", cold_bytes),
    {0},
};
