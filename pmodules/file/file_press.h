/* SPDX-License-Identifier: MIT */
/*
 * A worker thread that processes the snapshot file's pieces (slow work: compression) while the caller makes the next. It starts
 * with the first piece. If it cannot be created, the caller's thread does the work. It blocks all signals.
 */
#ifndef DP_PMODULES_FILE_FILE_PRESS_H
#define DP_PMODULES_FILE_FILE_PRESS_H

#include "base/buf.h"

#include <pthread.h>
#include <semaphore.h>

struct dp_press {
	void (*work)(void *of, struct dp_buf *piece);
	void *of;
	struct dp_buf piece;
	sem_t given, done;
	pthread_t thread;
	bool tried, runs, ends;
	bool busy; /* a piece was given and has not been waited for */
};

/* `work` is called for one piece at a time and must empty it. */
void dp_press_init(struct dp_press *p, void (*work)(void *of, struct dp_buf *piece), void *of);
/* Waits for the previous piece, then exchanges: `piece` becomes another, empty buffer. */
void dp_press_give(struct dp_press *p, struct dp_buf *piece);
/* After this the thread does not use `of` until the next piece is given. */
void dp_press_wait(struct dp_press *p);
void dp_press_fini(struct dp_press *p);

#endif
