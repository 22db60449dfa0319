/* SPDX-License-Identifier: MIT */
/* Fork children that record in the target's rings (decision 0037): which of them live. */
#ifndef DP_INJECTOR_TARGET_EVENTS_FOLLOWERS_H
#define DP_INJECTOR_TARGET_EVENTS_FOLLOWERS_H

#include "injector/ring/drain.h"
#include "injector/target/target.h"

/* Lists the processes that have the target's private region, for the drain's questions. */
void dp_followers_inspect(struct dp_target *t);
/* The pid, as dynprobe's user sees it, of a child with that id in its own pid namespace; 0 if it is not known (any more). */
pid_t dp_followers_outer(struct dp_target *t, pid_t inner);
/* The pid of the child with that number; 0: not known yet; or: */
enum { DP_FOLLOWER_ENDED = -1, DP_FOLLOWER_HIDDEN = -2 /* it may be one that dynprobe may not read */ };
pid_t dp_followers_pid(struct dp_target *t, uint32_t process);
/* The i-th child that is known, counted round and round; 0: none, or it may not be read. */
pid_t dp_followers_at(const struct dp_target *t, size_t i);
/* Whether an owner of slots or cells lives, as of that inspection. */
enum dp_owner_state dp_followers_state(const struct dp_target *t, const struct dp_slot_owner *owner);
/* Have processes joined since the last inspection? */
bool dp_followers_born(const struct dp_target *t);

#endif
