/* SPDX-License-Identifier: MIT */
/* How much memory a process has left, computed from files in the kernel's formats. */
#include "injector/target/budget.h"
#include "injector/target/room/headroom.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIB (UINT64_C(1) << 20)

static char root[64];

static void file(const char *path, const char *fmt, ...)
{
	char full[512];
	va_list args;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	FILE *f = fopen(full, "w");
	cr_assert(f, "%s", full);
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	fclose(f);
}

static void set_up(void)
{
	strcpy(root, "/tmp/dp-headroom-XXXXXX");
	cr_assert(mkdtemp(root));
	file("/proc/meminfo", "MemTotal:       24641572 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n");
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	cr_assert_eq(system(command), 0);
}

static struct dp_headroom headroom(void)
{
	struct dp_headroom h;

	dp_headroom_read(root, 42, &h);
	return h;
}

TestSuite(headroom, .init = set_up, .fini = tear_down);

static void version_2(const char *path, const char *mounted)
{
	file("/proc/42/cgroup", "0::%s\n", path);
	file("/proc/self/mountinfo",
	     "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	     "30 23 0:26 %s /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
	     mounted);
}

Test(headroom, is_the_machines_without_control_groups)
{
	const struct dp_headroom h = headroom();

	cr_expect_eq(h.left, UINT64_C(20000000) << 10);
	cr_expect_str_eq(h.by, "/proc/meminfo");
}

Test(headroom, is_that_of_the_group)
{
	version_2("/small", "/");
	file("/sys/fs/cgroup/small/memory.max", "33554432\n");
	file("/sys/fs/cgroup/small/memory.high", "max\n");
	file("/sys/fs/cgroup/small/memory.current", "3145728\n");
	file("/sys/fs/cgroup/small/memory.stat", "anon 1048576\nfile 1048576\ninactive_file 0\nactive_file 1048576\n");
	const struct dp_headroom h = headroom();
	cr_expect_eq(h.left, 29 * MIB);
	cr_expect_eq(h.most, 32 * MIB);
	cr_expect_str_eq(h.by, "/sys/fs/cgroup/small/memory.max");
}

Test(headroom, is_the_least_of_all_groups_above)
{
	version_2("/a/b/c", "/");
	file("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
	file("/sys/fs/cgroup/a/b/c/memory.current", "1000\n");
	file("/sys/fs/cgroup/a/b/memory.max", "%llu\n", (unsigned long long)(100 * MIB));
	file("/sys/fs/cgroup/a/b/memory.current", "%llu\n", (unsigned long long)(90 * MIB));
	file("/sys/fs/cgroup/a/memory.max", "%llu\n", (unsigned long long)(200 * MIB));
	file("/sys/fs/cgroup/a/memory.current", "%llu\n", (unsigned long long)(150 * MIB));
	const struct dp_headroom h = headroom();
	cr_expect_eq(h.left, 10 * MIB);
	cr_expect_str_eq(h.by, "/sys/fs/cgroup/a/b/memory.max");
}

Test(headroom, ends_where_the_group_is_slowed_down)
{
	version_2("/g", "/");
	file("/sys/fs/cgroup/g/memory.max", "%llu\n", (unsigned long long)(100 * MIB));
	file("/sys/fs/cgroup/g/memory.high", "%llu\n", (unsigned long long)(50 * MIB));
	file("/sys/fs/cgroup/g/memory.current", "%llu\n", (unsigned long long)(20 * MIB));
	const struct dp_headroom h = headroom();
	cr_expect_eq(h.left, 30 * MIB);
	cr_expect_str_eq(h.by, "/sys/fs/cgroup/g/memory.high");
}

Test(headroom, counts_cache_that_can_be_dropped_as_free)
{
	version_2("/g", "/");
	file("/sys/fs/cgroup/g/memory.max", "%llu\n", (unsigned long long)(100 * MIB));
	file("/sys/fs/cgroup/g/memory.current", "%llu\n", (unsigned long long)(100 * MIB));
	file("/sys/fs/cgroup/g/memory.stat", "anon 1\ninactive_file %llu\n", (unsigned long long)(60 * MIB));
	cr_expect_eq(headroom().left, 60 * MIB);
}

Test(headroom, is_none_in_a_group_that_has_too_much)
{
	version_2("/g", "/");
	file("/sys/fs/cgroup/g/memory.max", "1000\n");
	file("/sys/fs/cgroup/g/memory.current", "2000\n");
	cr_expect_eq(headroom().left, 0);
}

/* In a container only a part of the hierarchy is mounted. */
Test(headroom, is_found_below_what_is_mounted)
{
	version_2("/docker/abc/inner", "/docker/abc");
	file("/sys/fs/cgroup/inner/memory.max", "%llu\n", (unsigned long long)(80 * MIB));
	file("/sys/fs/cgroup/inner/memory.current", "0\n");
	file("/sys/fs/cgroup/memory.max", "%llu\n", (unsigned long long)(64 * MIB));
	file("/sys/fs/cgroup/memory.current", "0\n");
	cr_expect_eq(headroom().left, 64 * MIB);
	version_2("/../elsewhere", "/");
	cr_expect_eq(headroom().left, 64 * MIB, "an invisible limit does not hide a visible one");
}

Test(headroom, is_that_of_version_1_where_memory_is_there)
{
	file("/proc/42/cgroup", "9:name=systemd:/x\n4:cpu,memory:/box/small\n3:cpuset:/\n0::/other\n");
	file("/proc/self/mountinfo", "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	                             "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n"
	                             "33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	file("/sys/fs/cgroup/memory/box/small/memory.limit_in_bytes", "9223372036854771712\n");
	file("/sys/fs/cgroup/memory/box/small/memory.usage_in_bytes", "1000\n");
	file("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "%llu\n", (unsigned long long)(32 * MIB));
	file("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "%llu\n", (unsigned long long)(8 * MIB));
	file("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 0\ntotal_inactive_file %llu\n",
	     (unsigned long long)(4 * MIB));
	const struct dp_headroom h = headroom();
	cr_expect_eq(h.left, 28 * MIB);
	cr_expect_str_eq(h.by, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes");
}

Test(headroom, is_not_confused_by_damaged_files)
{
	file("/proc/42/cgroup", "0:\n::\n4:memory\n0::/g");
	file("/proc/self/mountinfo", "x\n - \n30 - cgroup2\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n"
	                             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	file("/sys/fs/cgroup/g/memory.max", "\n");
	file("/sys/fs/cgroup/g/memory.current", "much\n");
	cr_expect_eq(headroom().left, UINT64_C(20000000) << 10);
}

/* ---- the resulting sizes ---------------------------------------------------------------------- */

Test(budget, is_half_of_little_and_64_mib_of_much)
{
	cr_expect_eq(dp_budget_share(29 * MIB, 0), 29 * MIB / 2);
	cr_expect_eq(dp_budget_share(1000 * MIB, 0), 64 * MIB);
	cr_expect_eq(dp_budget_share(UINT64_MAX, 0), 64 * MIB);
	cr_expect_eq(dp_budget_share(1000 * MIB, 256 * MIB), 256 * MIB, "one ring of the requested size");
	cr_expect_eq(dp_budget_share(100 * MIB, 256 * MIB), 50 * MIB);
	cr_expect_eq(dp_budget_share(0, 0), 0);
}

Test(budget, leaves_each_of_the_threads_a_good_ring_where_there_is_enough)
{
	const struct dp_budget b = dp_budget_split(dp_budget_share(29 * MIB, 0), 41, 1024);

	cr_expect_geq(b.first, 41 * 16384);
	cr_expect_geq(b.most - b.first, 41 * (262144 - 16384));
	cr_expect_geq(b.slots, 41);
}

Test(budget, never_promises_more_than_there_is)
{
	for (uint64_t most = 16384; most < 256 * MIB; most = most * 5 / 4 + 7)
		for (unsigned threads = 0; threads < 5000; threads = threads * 3 + 1) {
			const struct dp_budget b = dp_budget_split(most, threads, 1024);
			cr_assert_leq(b.first, most);
			cr_assert_leq(b.slots * (uint64_t)16384, most);
			cr_assert(b.slots && b.slots <= 1024);
			cr_assert_eq(b.first % 16384, 0);
		}
}
