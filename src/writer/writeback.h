/* writeback.h - a thread that hands written pages to the disk, for all files of the process. It
 * runs while there are requests. */
#ifndef WRITER_WRITEBACK_H
#define WRITER_WRITEBACK_H

#include <stdbool.h>

/* The request of a file; starts empty, and its address must not change. */
struct writeback {
    int descriptor;
    bool is_waiting;
    struct writeback *next;
};

/* Requests that all written pages are handed to the disk, without waiting. Any thread. Without
 * another thread, this one does it. */
void writeback_request(struct writeback *writeback, int descriptor);

/* Before the descriptor is closed: withdraws the request, or waits until it has been met. */
void writeback_cancel(struct writeback *writeback);

#endif
