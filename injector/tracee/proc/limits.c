/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/limits.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/proc.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#define PATIENT_MAPS 16u /* mappings that the program may need next */

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

/* The soft limit of a line of /proc/PID/limits. */
static uint64_t soft_limit(const char *limits, const char *name)
{
	const char *line = strstr(limits, name);
	if (!line)
		return UINT64_MAX;
	line += strlen(name);
	line += strspn(line, " ");
	return isdigit((unsigned char)*line) ? strtoull(line, NULL, 10) : UINT64_MAX;
}

/* Returns bytes; the text has kB. */
static uint64_t kib_of(const char *text, const char *name, uint64_t missing)
{
	const char *at = dp_status_find(text, name);
	return at ? strtoull(at, NULL, 10) << 10 : missing;
}

static uint64_t number_in(const char *path, uint64_t missing)
{
	struct dp_buf b;
	dp_buf_init(&b);
	const uint64_t n = dp_proc_slurp(&b, "%s", path) && b.len ? strtoull(dp_buf_str(&b), NULL, 10) : missing;
	dp_buf_fini(&b);
	return n;
}

static uint64_t count_lines(const char *text)
{
	uint64_t n = 0;
	for (const char *p = text; p && (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

static uint64_t descriptors_below(pid_t pid, uint64_t most)
{
	char path[32];
	uint64_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dp_auto_closedir DIR *dir = opendir(path);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		n += isdigit((unsigned char)e->d_name[0]) && strtoull(e->d_name, NULL, 10) < most;
	return n;
}

static void read_status(const char *status, struct dp_resource_limits *ret)
{
	const char *caps = dp_status_find(status, "CapEff");
	ret->address.used = kib_of(status, "VmSize", 0);
	ret->data.used = kib_of(status, "VmData", 0);
	ret->locked.used = kib_of(status, "VmLck", 0);
	ret->locks = ret->locked.used > 0;
	ret->threads = (unsigned)dp_status_long(status, "Threads", 1);
	if (caps && strtoull(caps, NULL, 16) >> CAP_IPC_LOCK & 1)
		ret->locked.most = UINT64_MAX;
}

static void read_machine(struct dp_resource_limits *ret)
{
	struct dp_buf b;
	dp_buf_init(&b);
	ret->mappings.most = number_in("/proc/sys/vm/max_map_count", UINT64_MAX);
	if (number_in("/proc/sys/vm/overcommit_memory", 0) == 2 && dp_proc_slurp(&b, "/proc/meminfo"))
		ret->committed = (struct dp_limit){kib_of(dp_buf_str(&b), "CommitLimit", UINT64_MAX),
		                                   kib_of(dp_buf_str(&b), "Committed_AS", 0)};
	dp_buf_fini(&b);
}

void dp_limits_read(const struct dp_process *p, const char *maps, struct dp_resource_limits *ret)
{
	struct dp_buf limits, status;
	dp_buf_init(&limits);
	dp_buf_init(&status);
	*ret = (struct dp_resource_limits){.committed.most = UINT64_MAX, .mappings.used = count_lines(maps), .threads = 1};
	dp_proc_slurp(&limits, "/proc/%d/task/%d/limits", p->pid, p->alive);
	dp_proc_slurp(&status, "/proc/%d/task/%d/status", p->pid, p->alive);
	const char *text = dp_buf_str(&limits);
	ret->address.most = soft_limit(text, "Max address space");
	ret->data.most = soft_limit(text, "Max data size");
	ret->locked.most = soft_limit(text, "Max locked memory");
	ret->files.most = soft_limit(text, "Max open files");
	ret->files.used = ret->files.most < UINT64_MAX ? descriptors_below(p->pid, ret->files.most) : 0;
	read_status(dp_buf_str(&status), ret);
	read_machine(ret);
	dp_buf_fini(&limits);
	dp_buf_fini(&status);
}

uint64_t dp_limit_left(struct dp_limit l)
{
	return l.most == UINT64_MAX ? UINT64_MAX : l.most > l.used ? l.most - l.used : 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------------- */

static const char *amount(uint64_t bytes, char ret[32])
{
	if (bytes >= 10u << 20)
		snprintf(ret, 32, "%llu MiB", (unsigned long long)(bytes >> 20));
	else
		snprintf(ret, 32, "%llu KiB", (unsigned long long)(bytes >> 10));
	return ret;
}

static struct dp_error *too_large(const struct dp_process *p, const char *what, struct dp_limit l, const struct dp_need *need,
                                  const char *helps)
{
	char most[32], left[32], want[32], share[64] = "";
	if (need->share > 1)
		snprintf(share, sizeof(share), ", and may use 1/%u of what is left", need->share);
	return dp_error(DP_TAG_LIMIT, "process %d (%s) may use %s of %s, of which %s are left; probes need %s%s: %s", p->pid,
	                p->comm, amount(l.most, most), what, amount(dp_limit_left(l), left), amount(need->address, want), share,
	                helps);
}

static const char *smaller_ring(const struct dp_need *need, const char *option, pid_t pid, char ret[128])
{
	const int n = need->ring_size ? snprintf(ret, 128, "use --buffer-size %zuK or less, or ", need->ring_size >> 10) : 0;
	snprintf(ret + n, 128 - (size_t)n, "raise the limit (prlimit --pid %d --%s=unlimited)", pid, option);
	return ret;
}

static struct dp_error *check_files(const struct dp_process *p, const struct dp_resource_limits *l)
{
	if (dp_limit_left(l->files))
		return NULL;
	return dp_error(DP_TAG_LIMIT,
	                "process %d (%s) has no free file descriptor (RLIMIT_NOFILE is %llu), but mapping needs one "
	                "temporarily: raise the limit (prlimit --pid %d --nofile=%llu)",
	                p->pid, p->comm, (unsigned long long)l->files.most, p->pid, (unsigned long long)l->files.most + 1);
}

static struct dp_error *check_mappings(const struct dp_process *p, const struct dp_resource_limits *l, uint64_t need)
{
	if (dp_limit_left(l->mappings) >= need + PATIENT_MAPS)
		return NULL;
	return dp_error(DP_TAG_LIMIT,
	                "process %d (%s) has %llu of the %llu mappings that vm.max_map_count allows, and probes need %llu: raise "
	                "the limit (sysctl vm.max_map_count=%llu)",
	                p->pid, p->comm, (unsigned long long)l->mappings.used, (unsigned long long)l->mappings.most,
	                (unsigned long long)need, (unsigned long long)(2 * l->mappings.most));
}

static struct dp_error *check_committed(const struct dp_resource_limits *l, uint64_t need)
{
	char most[32], left[32], want[32];
	if (dp_limit_left(l->committed) >= need)
		return NULL;
	return dp_error(DP_TAG_LIMIT,
	                "vm.overcommit_memory=2 requires all memory in advance: probes need %s, but of %s (CommitLimit) "
	                "%s are left: use a smaller --max-memory or --buffer-size, or raise vm.overcommit_ratio",
	                amount(need, want), amount(l->committed.most, most), amount(dp_limit_left(l->committed), left));
}

struct dp_error *dp_limits_check(const struct dp_process *p, const struct dp_resource_limits *l, const struct dp_need *need)
{
	char helps[128];
	if (dp_limit_left(l->address) / (need->share ? need->share : 1) < need->address)
		return too_large(p, "address space (RLIMIT_AS)", l->address, need, smaller_ring(need, "as", p->pid, helps));
	const struct dp_need private = {.address = need->private};
	if (dp_limit_left(l->data) < need->private)
		return too_large(p, "data (RLIMIT_DATA)", l->data, &private, smaller_ring(&private, "data", p->pid, helps));
	DP_TRY(check_files(p, l));
	DP_TRY(check_mappings(p, l, need->mappings));
	return check_committed(l, need->committed);
}

/* ---- after a failure ---------------------------------------------------------------------------------------------------- */

static struct dp_error *name_locked(const struct dp_process *p, const struct dp_resource_limits *l, const struct dp_need *need)
{
	char helps[128];
	return too_large(p, "locked memory (RLIMIT_MEMLOCK, after mlockall)", l->locked, need,
	                 smaller_ring(need, "memlock", p->pid, helps));
}

static struct dp_error *named(const struct dp_process *p, const struct dp_need *need, int sys)
{
	dp_auto_free char *maps = NULL;
	struct dp_resource_limits l;
	dp_error_destroy(dp_process_maps(p, &maps));
	dp_limits_read(p, maps, &l);
	switch (sys) {
	case EMFILE:
		l.files.used = l.files.most;
		return check_files(p, &l);
	case EAGAIN:
		return l.locks ? name_locked(p, &l, need) : NULL;
	case ENOMEM:
		return dp_limits_check(p, &l, need);
	case EACCES:
	case EPERM:
		return dp_error(DP_TAG_LIMIT,
		                "process %d (%s) may not map new code: a system policy (vm.memfd_noexec, a security module) "
		                "or its own policy (PR_SET_MDWE) forbids it",
		                p->pid, p->comm);
	default:
		return NULL;
	}
}

struct dp_error *dp_limits_name(const struct dp_process *p, const struct dp_need *need, struct dp_error *err)
{
	struct dp_error *name = err && err->tag == DP_TAG_REMOTE && err->sys ? named(p, need, err->sys) : NULL;
	if (!name)
		return err;
	name->cause = err;
	name->sys = err->sys;
	return name;
}
