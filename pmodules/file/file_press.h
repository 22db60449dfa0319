/* SPDX-License-Identifier: MIT */
/*
 * A second processor for the snapshot's file: a thread that takes one piece at a time and does with it what takes long, while the
 * next piece is made. There is none before the first piece comes, and none where none can be had: pieces are then worked on at
 * once. It takes no signals, which are the program's own business.
 */
#ifndef DP_PMODULES_FILE_PRESS_H
#define DP_PMODULES_FILE_PRESS_H

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
	bool busy; /* a piece was given, and its end was not waited for */
};

/* `work` is called with one piece after the other, never with two at a time, and empties it. */
void dp_press_init(struct dp_press *p, void (*work)(void *of, struct dp_buf *piece), void *of);
/* Waits for the piece before; `piece` is then another one, and empty. */
void dp_press_give(struct dp_press *p, struct dp_buf *piece);
/* Behind it nothing of `of` is used by the thread, until it is given something. */
void dp_press_wait(struct dp_press *p);
void dp_press_fini(struct dp_press *p);

#endif
