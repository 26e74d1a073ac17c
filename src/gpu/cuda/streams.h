/* streams.h - an open device: its memory, divided among its lanes, and the jobs of each lane. The
 * contracts are those of the table in phema/cuda_plugin.h. */
#ifndef GPU_CUDA_STREAMS_H
#define GPU_CUDA_STREAMS_H

#include "phema/cuda_plugin.h"

enum phema_cuda_result streams_open(struct phema_cuda_device **out, int32_t index,
                                    const struct phema_cuda_layout *layout,
                                    struct phema_cuda_message *message);
void streams_close(struct phema_cuda_device *device);
enum phema_cuda_result streams_free_bytes(uint64_t *bytes, struct phema_cuda_device *device,
                                          struct phema_cuda_message *message);
uint8_t *streams_slots(struct phema_cuda_device *device, uint64_t lane);
const struct phema_cuda_counts *streams_counts(struct phema_cuda_device *device, uint64_t lane);
enum phema_cuda_result streams_feed(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                    const uint8_t *from, uint64_t bytes, uint64_t input,
                                    struct phema_cuda_message *message);
enum phema_cuda_result streams_average(struct phema_cuda_device *device, uint64_t lane,
                                       const struct phema_cuda_job *job,
                                       struct phema_cuda_message *message);
enum phema_cuda_result streams_fetch(struct phema_cuda_device *device, uint64_t lane, uint64_t row,
                                     uint64_t bytes, uint64_t slot,
                                     struct phema_cuda_message *message);
enum phema_cuda_result streams_wait(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                    struct phema_cuda_message *message);

#endif
