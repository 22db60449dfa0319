/* SPDX-License-Identifier: MIT */
/*
 * Serves an earlier tool's probes: during a recording their rings are drained and do not overwrite old records. A ring must never
 * have two consumers; agent/abi.h describes how threads hand over their rings and get them back.
 */
#include "injector/resident/resident.h"
#include "injector/target/events/outer.h"

#include <sys/stat.h>
#include <unistd.h>

static struct dp_error *set_overwrite(struct dp_resident *s, uint32_t on)
{
	return dp_resident_put(s, offsetof(struct dp_control, overwrite), &on, sizeof(on));
}

static struct dp_error *set_word(struct dp_resident *s, uint64_t offset, uint64_t value)
{
	return dp_resident_put(s, offset, &value, sizeof(value));
}

/*
 * A named server counts as alive while its process exists, so its name is removed last. Under a seccomp filter nothing is
 * overwritten, because that takes system calls.
 */
struct dp_error *dp_resident_unserve(struct dp_resident *s)
{
	DP_TRY(set_overwrite(s, !dp_target_filtered(s->target)));
	DP_TRY(set_word(s, offsetof(struct dp_control, tool_pid), 0));
	s->control.tool_pid = 0;
	return NULL;
}

static struct dp_error *sign(struct dp_resident *s)
{
	struct stat st;
	const uint64_t ns = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino, pid = (uint64_t)getpid();
	DP_TRY(set_word(s, offsetof(struct dp_control, tool_ns), ns));
	DP_TRY(set_word(s, offsetof(struct dp_control, tool_start), dp_process_start_time(getpid())));
	return set_word(s, offsetof(struct dp_control, tool_pid), pid);
}

struct dp_error *dp_resident_serve(struct dp_resident *s)
{
	if (s->shadow)
		return NULL;
	struct dp_error *err = sign(s);
	if (!err)
		err = set_overwrite(s, 0);
	if (!err)
		err = dp_shadow_create(s, &s->shadow);
	if (err)
		dp_error_destroy(dp_resident_unserve(s));
	return err;
}

static struct dp_error *drain(struct dp_resident *s, bool last, struct dp_outer *to)
{
	if (!s->shadow)
		return dp_error(DP_TAG_INTERNAL, "this dynprobe does not serve the probes left in process %d",
		                s->target->process.pid);
	return dp_shadow_run(s, last, to);
}

struct dp_error *dp_resident_drain(struct dp_resident *s, bool last, dp_hit_fn each, void *data)
{
	return drain(s, last, &(struct dp_outer){.t = s->target, .each = each, .data = data});
}

struct dp_error *dp_resident_drain_lanes(struct dp_resident *s, bool last, dp_hits_fn each, void *data)
{
	return drain(s, last, &(struct dp_outer){.t = s->target, .lane = each, .data = data});
}

struct dp_error *dp_resident_release(struct dp_resident *s)
{
	if (!s->shadow)
		return NULL;
	s->shadow = dp_shadow_destroy(s->shadow);
	return s->unmapped || s->target->gone ? NULL : dp_resident_unserve(s);
}
