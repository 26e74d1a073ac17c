// SPDX-License-Identifier: Apache-2.0
/* choose_device.c - whether a device is worth its while. All bytes come from files, through the
 * processor's memory: with few targets adding them up there costs no more than reading them, and
 * the way to the device is longer. With many the processor computes for most of the time, which a
 * device does beside the reading. */
#include "phema/gpu.h"

#include <math.h>
#include <stdio.h>

#include "phema/strbuf.h"

/* Below this a device is not worth the trouble, nor the power. */
#define LEAST_GAIN 1.3

bool phema_device_wins(char *why, size_t why_size, const struct phema_device_rates *rates)
{
    double device = fmin(rates->device * rates->n_devices, rates->reading);
    bool wins = device > LEAST_GAIN * rates->processor;
    struct phema_name_buffer ours, theirs;
    (void)snprintf(why, why_size, "%s/s of snapshots on the device, %s/s on the processor%s",
                   phema_size_format(&theirs, (uint64_t)device),
                   phema_size_format(&ours, (uint64_t)rates->processor),
                   wins                               ? ""
                   : rates->reading < device * 1.0001 ? ", which reading bounds"
                                                      : "");
    return wins;
}
