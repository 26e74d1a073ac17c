// SPDX-License-Identifier: Apache-2.0
/* forms.c - Capabilities of each output form: parts, compression, copies, directories. */
#include "phema/output.h"
#include "phema/writer.h"

static const struct phema_output_traits forms[] = {
    [PHEMA_FORM_FRESH] = {.plain_suffix = ""},
    [PHEMA_FORM_COMPRESSED] = {.is_compressed = true,
                               .has_finish = true,
                               .plain_suffix = PHEMA_PLAIN_SUFFIX},
    [PHEMA_FORM_SHARDED] = {.is_directory = true, .plain_suffix = ""},
    [PHEMA_FORM_TEMPLATE] = {.is_copy = true, .has_finish = true, .plain_suffix = ""},
    [PHEMA_FORM_DISTRIBUTED] = {.is_directory = true,
                                .has_provenance_file = true,
                                .plain_suffix = ""},
    [PHEMA_FORM_DISTRIBUTED_TEMPLATE] = {.is_directory = true,
                                         .is_copy = true,
                                         .has_provenance_file = true,
                                         .has_finish = true,
                                         .plain_suffix = ""},
};

const struct phema_output_traits *phema_output_traits(const struct phema_outputs *outputs)
{
    return &forms[outputs->form];
}
