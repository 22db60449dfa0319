/* SPDX-License-Identifier: MIT */
/*
 * What one snapshot leaves for the next of the same process: modules, debug information, resolved code addresses and types.
 * Nothing of the process's memory.
 */
#include "pmodules/capture/capture_internal.h"

#include <stdlib.h>

#define KEPT_MAX (UINT64_C(64) << 20)

struct taking *dp_taking_create(struct dp_snap_capture *t)
{
	struct taking *k = calloc(1, sizeof(*k));
	if (k)
		k->take = t;
	return k;
}

static void end(struct taking *k)
{
	if (k->s)
		dp_host_end(dp_snap_capture_host(k->take));
	dp_host_set_debug_ctx(dp_snap_capture_host(k->take), NULL);
	dp_host_set_stopped(dp_snap_capture_host(k->take), NULL);
}

struct taking *dp_taking_destroy(struct taking *k)
{
	if (!k)
		return NULL;
	end(k);
	dp_extract_destroy(k->extract);
	dp_debug_ctx_destroy(k->world);
	dp_stopped_close(k->still);
	dp_snapshot_destroy(k->s);
	free(k);
	return NULL;
}

struct dp_snapshot *dp_taking_finish(struct taking *k, struct taking **kept)
{
	end(k);
	struct dp_snapshot *s = k->s;
	k->s = NULL;
	/* Values that modules made are freed only with the world. */
	if (dp_stopped_mode(k->still) == DP_STOPPED_CORE || dp_debug_ctx_bytes(k->world) > KEPT_MAX) {
		dp_taking_destroy(k);
		return s;
	}
	dp_stopped_shed(k->still);
	dp_taking_destroy(*kept);
	*kept = k;
	return s;
}

static struct dp_error *again(struct taking *k, pid_t pid, const struct dp_stopped_options *options, bool *ret)
{
	*ret = false;
	return k && dp_stopped_pid(k->still) == pid ? dp_stopped_again(&k->still, options, ret) : NULL;
}

struct dp_error *dp_taking_begin(struct dp_snap_capture *t, struct taking *kept, pid_t pid,
                                 const struct dp_stopped_options *options, struct taking **ret)
{
	bool same;
	struct dp_error *err = again(kept, pid, options, &same);
	if (!err && same) {
		*ret = kept;
		return NULL;
	}
	dp_taking_destroy(kept);
	if (err)
		return err;
	struct taking *k = dp_taking_create(t);
	if (!k)
		return dp_error_nomem();
	err = dp_stopped_open(pid, options, &k->still);
	if (err)
		dp_taking_destroy(k);
	else
		*ret = k;
	return err;
}
