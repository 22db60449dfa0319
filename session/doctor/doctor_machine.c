/* SPDX-License-Identifier: MIT */
#include "session/doctor/findings.h"

#include "injector/tracee/exec/exec_watch.h"
#include "injector/tracee/proc/capabilities.h"
#include "injector/tracee/proc/proc.h"
#include "output/lttng/lttng.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_LEAST 5010u /* 1000 * major + minor */
#define NO_FILE      (-1000)

static long number_in(const char *path)
{
	struct dp_buf b = {0};
	const long n = dp_proc_slurp(&b, "%s", path) ? strtol(dp_buf_str(&b), NULL, 10) : NO_FILE;
	dp_buf_fini(&b);
	return n;
}

static void check_kernel(struct dp_findings *to)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return;
	const bool x86 = !strcmp(u.machine, "x86_64"), recent = 1000 * major + minor >= KERNEL_LEAST;
	dp_find(to, "kernel", x86 && recent ? DP_HEALTH_OK : DP_HEALTH_NO,
	        !x86      ? "use an x86-64 machine"
	        : !recent ? "use Linux 5.10 or later"
	                  : NULL,
	        "Linux %s, %s", u.release, u.machine);
}

/* ---- the user -------------------------------------------------------------------------------------------------------------- */

static bool has(uint64_t set, unsigned cap)
{
	return set >> cap & 1;
}

static void check_user(struct dp_findings *to, uint64_t caps)
{
	char user[64], names[256];
	dp_user_text((long)geteuid(), user, sizeof(user));
	if (has(caps, CAP_SYS_PTRACE))
		dp_find(to, "user", DP_HEALTH_OK, NULL, "%s, with CAP_SYS_PTRACE: may trace the processes of every user", user);
	else
		dp_find(to, "user", DP_HEALTH_NOTE,
		        geteuid() ? "for processes of other users run dynprobe as root"
		                  : "give dynprobe CAP_SYS_PTRACE (docker: --cap-add SYS_PTRACE)",
		        "%s, capabilities: %s: may trace only processes of its own, which have no more rights", user,
		        dp_capabilities_text(caps, names, sizeof(names)));
}

static void check_scope(struct dp_findings *to, uint64_t caps)
{
	const long scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
	const bool may = scope <= 0 || (scope < 3 && has(caps, CAP_SYS_PTRACE));
	if (scope == NO_FILE)
		dp_find(to, "ptrace_scope", DP_HEALTH_OK, NULL, "this kernel has no such rule");
	else if (may)
		dp_find(to, "ptrace_scope", DP_HEALTH_OK, NULL, "%ld%s", scope, scope ? ", which does not bind this user" : "");
	else
		dp_find(to, "ptrace_scope", scope == 1 ? DP_HEALTH_NOTE : DP_HEALTH_NO,
		        scope == 1   ? "run dynprobe as root, or start the program with dynprobe -c; or, as root: sysctl "
		                       "kernel.yama.ptrace_scope=0"
		        : scope == 2 ? "run dynprobe as root"
		                     : "boot with another setting of kernel.yama.ptrace_scope",
		        "%ld: this user may trace %s", scope, scope == 1 ? "only programs that dynprobe starts" : "no process");
}

static void check_own_filter(struct dp_findings *to, uint64_t caps, const char *status)
{
	const bool filtered = dp_status_long(status, "Seccomp", 0) != 0;
	if (filtered)
		dp_find(to, "seccomp", DP_HEALTH_NOTE,
		        "run dynprobe outside of the container, or with --security-opt seccomp=unconfined",
		        "dynprobe itself is under a seccomp filter: it cannot read those of processes");
	else if (!has(caps, CAP_SYS_ADMIN))
		dp_find(to, "seccomp", DP_HEALTH_NOTE, "for processes under a seccomp filter run dynprobe as root",
		        "without CAP_SYS_ADMIN dynprobe cannot read the seccomp filters of processes");
	else
		dp_find(to, "seccomp", DP_HEALTH_OK, NULL, "dynprobe can read the seccomp filters of processes");
}

static void check_namespace(struct dp_findings *to)
{
	struct dp_buf map = {0};
	unsigned inside, outside;
	unsigned long count = 0;
	if (dp_proc_slurp(&map, "/proc/self/uid_map") && sscanf(dp_buf_str(&map), "%u %u %lu", &inside, &outside, &count) == 3 &&
	    count != 4294967295ul)
		dp_find(to, "namespaces", DP_HEALTH_NOTE, "for other processes run dynprobe on the host",
		        "dynprobe is in a user namespace: its capabilities hold only for processes in there");
	dp_buf_fini(&map);
}

/* ---- parts of dynprobe ----------------------------------------------------------------------------------------------------- */

/* Switches of threads are events of the kernel, which perf_event_open(2) shows to others up to level 1 only. */
static void check_off_cpu(struct dp_findings *to, long level, bool privileged)
{
	if (privileged || level <= 1)
		dp_find(to, "off_cpu", DP_HEALTH_OK, NULL, "--profile off-cpu works");
	else
		dp_find(to, "off_cpu", DP_HEALTH_NOTE, "run dynprobe as root, or use --syscall '*' --sum duration --by backtrace",
		        "--profile off-cpu needs CAP_PERFMON, or perf_event_paranoid below 2");
}

static void check_perf(struct dp_findings *to, uint64_t caps)
{
	const long level = number_in("/proc/sys/kernel/perf_event_paranoid");
	const bool privileged = has(caps, CAP_SYS_ADMIN) || has(caps, 38 /* CAP_PERFMON */);
	if (level == NO_FILE) {
		dp_find(to, "profile", DP_HEALTH_NO, "use a kernel with CONFIG_PERF_EVENTS",
		        "this kernel has no perf events, which --profile needs");
	} else if (level <= 2 || privileged) {
		dp_find(to, "profile", DP_HEALTH_OK, NULL, "--profile works (perf_event_paranoid is %ld)", level);
		check_off_cpu(to, level, privileged);
	} else {
		dp_find(to, "profile", DP_HEALTH_NO, "as root: sysctl kernel.perf_event_paranoid=2",
		        "--profile needs perf events, which perf_event_paranoid=%ld allows to root only", level);
	}
}

/* Opens a watch on no program and closes it. */
static void check_program(struct dp_findings *to)
{
	const char *path = "/proc/self/exe";
	const struct dp_exec_watched what = {.path = &path, .npaths = 1};
	struct dp_exec_watch *w = NULL;
	struct dp_error *err = dp_exec_watch_create(&what, &w);
	if (err) {
		dp_find_error(to, "program", DP_HEALTH_NO, dp_error_wrap(err, "--program, --all and --follow-exec do not work"));
		return;
	}
	dp_exec_watch_destroy(w);
	dp_find(to, "program", DP_HEALTH_OK, NULL, "--program, --all and --follow-exec work (fanotify)");
}

static void check_memfd(struct dp_findings *to)
{
	const long level = number_in("/proc/sys/vm/memfd_noexec");
	if (level == 2)
		dp_find(to, "memfd", DP_HEALTH_OK, NULL,
		        "vm.memfd_noexec is 2: probes use sealed memory, which it does not restrict");
	else
		dp_find(to, "memfd", DP_HEALTH_OK, NULL, "%s",
		        level == NO_FILE ? "no restriction" : "vm.memfd_noexec allows executable memory");
}

static void check_lttng(struct dp_findings *to)
{
	struct dp_error *err = dp_lttng_reachable();
	if (!err)
		dp_find(to, "lttng", DP_HEALTH_OK, NULL, "a session daemon answers: --session works");
	else
		dp_find_error(to, "lttng", DP_HEALTH_NOTE, dp_error_wrap(err, "--session and --sink lttng do not work now"));
}

/* The stubs read the time stamp counter of the processor that they run on. */
static void check_tsc(struct dp_findings *to)
{
	struct dp_buf cpu = {0}, clock = {0};
	const bool known = dp_proc_slurp(&cpu, "/proc/cpuinfo");
	const bool constant = known && strstr(dp_buf_str(&cpu), "constant_tsc"),
	           nonstop = known && strstr(dp_buf_str(&cpu), "nonstop_tsc");
	dp_proc_slurp(&clock, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	const char *source = dp_buf_str(&clock);
	const int n = (int)strcspn(source, "\n");
	if (!known || (constant && nonstop))
		dp_find(to, "tsc", DP_HEALTH_OK, NULL, "the time stamp counter is steady; the kernel's clock is %.*s", n, source);
	else
		dp_find(to, "tsc", DP_HEALTH_NOTE, "trust the order of events within a thread; durations may be off",
		        "the time stamp counter %s; the kernel's clock is %.*s",
		        constant ? "stops in deep sleep" : "changes its rate", n, source);
	dp_buf_fini(&cpu);
	dp_buf_fini(&clock);
}

static void check_debuginfod(struct dp_findings *to)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	if (urls && *urls)
		dp_find(to, "debuginfod", DP_HEALTH_OK, NULL, "missing debug information is fetched from %s", urls);
	else
		dp_find(to, "debuginfod", DP_HEALTH_NOTE,
		        "set DEBUGINFOD_URLS (Debian: https://debuginfod.debian.net) to have debug information fetched",
		        "not used: variables and lines need installed debug symbols");
}

void dp_doctor_machine(struct dp_findings *to)
{
	struct dp_buf status = {0};
	dp_proc_slurp(&status, "/proc/self/status");
	const uint64_t caps = dp_capabilities_of(dp_buf_str(&status), "CapEff");
	check_kernel(to);
	check_user(to, caps);
	check_scope(to, caps);
	check_own_filter(to, caps, dp_buf_str(&status));
	check_namespace(to);
	check_perf(to, caps);
	check_program(to);
	check_memfd(to);
	check_lttng(to);
	check_tsc(to);
	check_debuginfod(to);
	dp_buf_fini(&status);
}
