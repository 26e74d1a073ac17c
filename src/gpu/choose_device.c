// SPDX-License-Identifier: Apache-2.0
/* choose_device.c - GPU or CPU: the rule and its reason. All bytes come from files, through the
 * processor's memory. With few targets the CPU sums as fast as it reads, and copying to the device
 * only adds time. With many targets the CPU spends most of its time on arithmetic, which a device
 * does while the files are read. */
#include "phema/gpu.h"

#include <math.h>
#include <stdio.h>

#include "phema/strbuf.h"

/* Smaller gains do not justify the power and complexity of a device. */
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
