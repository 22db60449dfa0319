/* SPDX-License-Identifier: MIT */
/* Attributes, with the names that other tools use for them; sizes in bytes. */
#include "pmodules/capture/capture_internal.h"

#include "injector/tracee/proc/proc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

struct field {
	const char *in_proc, *key;
	bool kib;
};

static const struct field of_status[] = {
        {"VmData", "vm.data.size", true},
        {"VmLck", "vm.locked.size", true},
        {"VmPTE", "vm.pte.size", true},
        {"VmHWM", "vm.rss.peak", true},
        {"VmRSS", "vm.rss.size", true},
        {"VmStk", "vm.stack.size", true},
        {"VmSwap", "vm.swap.size", true},
        {"VmPeak", "vm.vma.peak", true},
        {"VmSize", "vm.vma.size", true},
        {"voluntary_ctxt_switches", "sched.cs.voluntary", false},
        {"nonvoluntary_ctxt_switches", "sched.cs.involuntary", false},
        {"PPid", "process.parent", false},
        {"Uid", "process.uid", false},
        {"Gid", "process.gid", false},
};

static const struct field of_meminfo[] = {
        {"MemTotal", "system.memory.total", true},
        {"MemFree", "system.memory.free", true},
        {"MemAvailable", "system.memory.available", true},
        {"Buffers", "system.memory.buffers", true},
        {"Cached", "system.memory.cached", true},
        {"Active", "system.memory.active", true},
        {"Inactive", "system.memory.inactive", true},
        {"Dirty", "system.memory.dirty", true},
        {"Writeback", "system.memory.writeback", true},
        {"Slab", "system.memory.slab", true},
        {"SwapCached", "system.memory.swap.cached", true},
        {"SwapTotal", "system.memory.swap.total", true},
        {"SwapFree", "system.memory.swap.free", true},
        {"VmallocTotal", "system.memory.vmalloc.total", true},
        {"VmallocUsed", "system.memory.vmalloc.used", true},
        {"VmallocChunk", "system.memory.vmalloc.chunk", true},
};

static void take_fields(struct dp_snapshot *s, const char *text, const struct field *field, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *at = dp_status_find(text, field[i].in_proc);
		if (at)
			dp_snapshot_set_int(s, field[i].key, strtoll(at, NULL, 10) * (field[i].kib ? 1024 : 1));
	}
}

static void take_file(struct dp_snapshot *s, const char *path, const struct field *field, size_t n)
{
	struct dp_buf b;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "%s", path))
		take_fields(s, dp_buf_str(&b), field, n);
	dp_buf_fini(&b);
}

/* The processor's model, from the first lines of /proc/cpuinfo. */
static void take_cpu(struct dp_snapshot *s)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		dp_snapshot_set_text(s, "cpu.brand", colon + 1 + strspn(colon + 1, " "));
		break;
	}
	if (f)
		fclose(f);
	dp_snapshot_set_text(s, "cpu.arch", "x86_64");
}

void dp_snap_capture_machine(struct dp_snapshot *s)
{
	struct utsname u;
	if (uname(&u))
		return;
	s->hostname = dp_snapshot_text(s, u.nodename);
	s->kernel = dp_snapshot_text(s, u.release);
	dp_snapshot_set_text(s, "hostname", u.nodename);
	dp_snapshot_set_text(s, "uname.sysname", u.sysname);
	dp_snapshot_set_text(s, "uname.release", u.release);
	dp_snapshot_set_text(s, "uname.version", u.version);
	dp_snapshot_set_text(s, "uname.machine", u.machine);
	take_cpu(s);
	take_file(s, "/proc/meminfo", of_meminfo, sizeof(of_meminfo) / sizeof(*of_meminfo));
}

void dp_snap_capture_statistics(struct dp_snapshot *s, pid_t pid)
{
	char path[64];
	struct dp_buf b;
	dp_buf_init(&b);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (dp_proc_slurp(&b, "%s", path)) {
		const char *text = dp_buf_str(&b);
		take_fields(s, text, of_status, sizeof(of_status) / sizeof(*of_status));
		const long file = dp_status_long(text, "RssFile", 0), shmem = dp_status_long(text, "RssShmem", 0);
		dp_snapshot_set_int(s, "vm.shared.size", (int64_t)(file + shmem) * 1024);
	}
	dp_buf_fini(&b);
}
