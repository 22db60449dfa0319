/* SPDX-License-Identifier: MIT */
#include "helper_probe.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The displaced instruction of bar is a system call's number: a thread may be caught behind it. */
__asm__(".pushsection .text\n"
        ".balign 64\n"
        ".globl pr_foo, pr_bar, pr_hook\n"
        ".type pr_foo, @function\n"
        "pr_foo:\n"
        "	movl $7, %eax\n"
        "	addl %edi, %eax\n"
        "	ret\n"
        ".size pr_foo, . - pr_foo\n"
        ".balign 64\n"
        ".type pr_bar, @function\n"
        "pr_bar:\n"
        "	movl $-3, %eax\n"
        "	imull %edi, %eax\n"
        "	ret\n"
        ".size pr_bar, . - pr_bar\n"
        ".balign 64\n"
        ".type pr_hook, @function\n"
        "pr_hook:\n"
        "	ret\n"
        ".size pr_hook, . - pr_hook\n"
        ".popsection\n");

extern void pr_hook(void);

#define SIZE 8u
static const uint8_t foo_bytes[SIZE] = {0xb8, 7, 0, 0, 0, 0x01, 0xf8, 0xc3};
static const uint8_t bar_bytes[SIZE + 1] = {0xb8, 0xfd, 0xff, 0xff, 0xff, 0x0f, 0xaf, 0xc7, 0xc3};

uint64_t pr_addr(unsigned which)
{
	return (uint64_t)(uintptr_t)(which == PR_FOO ? pr_foo : pr_bar);
}

static const uint8_t *bytes_of(unsigned which)
{
	return which == PR_FOO ? foo_bytes : bar_bytes;
}

static size_t size_of(unsigned which)
{
	return which == PR_FOO ? sizeof(foo_bytes) : sizeof(bar_bytes);
}

bool pr_original(pid_t pid, unsigned which)
{
	uint8_t now[16];
	struct dp_process p = {.pid = pid, .alive = pid};
	const size_t n = size_of(which);
	cr_assert_eq(dp_mem_read(&p, dp_addr_of(pr_addr(which)), now, n), n);
	return !memcmp(now, bytes_of(which), n);
}

void pr_calling(void)
{
	int (*volatile foo)(int) = pr_foo, (*volatile bar)(int) = pr_bar;
	tr->ready = 1;
	for (int i = 0;; i++) {
		if (foo(i) != i + 7 || bar(i) != -3 * i)
			tr->failed++;
		tr->calls++;
		i &= 0xffff;
	}
}

static void *calling(void *none)
{
	(void)none;
	pr_calling();
	return NULL;
}

void pr_calling_threads(void)
{
	for (int i = 1; i < 4; i++) {
		pthread_t t;
		pthread_create(&t, NULL, calling, NULL);
	}
	pr_calling();
}

struct dp_target *pr_open(pid_t pid, const struct dp_target_options *options)
{
	struct dp_target *t = NULL;
	tr_ok(dp_target_open(pid, options, &t));
	return t;
}

static struct dp_error *plan(struct dp_target *t, struct dp_space *space, struct dp_planner *planner, uint64_t lost,
                             const struct pr_ask *ask, unsigned i, struct dp_plan *ret)
{
	const struct dp_segment segment = {pr_addr(ask->which), bytes_of(ask->which), size_of(ask->which), true};
	const struct dp_text text = {.segment = &segment, .nsegments = 1, .function = segment.addr, .size = segment.n};
	const struct dp_fields none = {0};
	const uint64_t gates = dp_target_gates(t);
	const struct dp_request request = {
	        .site = segment.addr,
	        .probe = ask->own ? DP_NO_PROBE : (uint16_t)i,
	        .lost = lost + i * sizeof(struct dp_lost),
	        .text = &text,
	        .fields = &none,
	        .gate = {ask->own || !gates ? 0 : gates + 4 * i},
	        .hook = ask->own ? (uint64_t)(uintptr_t)pr_hook : 0,
	};
	(void)space;
	return dp_planner_add(planner, &request, ret);
}

struct dp_error *pr_install(struct dp_target *t, const struct pr_ask *ask, unsigned n, struct dp_install_result *results)
{
	struct dp_space *space = NULL;
	struct dp_planner *planner = NULL;
	struct dp_runtime runtime;
	struct dp_install_stats stats;
	const struct dp_extent *extents;
	struct dp_plan plans[8];
	uint64_t lost;
	cr_assert(n <= 8);
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, n, &runtime, &lost));
	tr_ok(dp_planner_create(space, &runtime, &planner));
	for (unsigned i = 0; i < n; i++)
		tr_ok(plan(t, space, planner, lost, &ask[i], i, &plans[i]));
	const size_t nextents = dp_planner_extents(planner, &extents);
	struct dp_error *err = dp_target_install(t, extents, nextents, plans, n, NULL, 0, results, &stats);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
	return err;
}

void pr_placed(struct dp_target *t, const struct pr_ask *ask, unsigned n)
{
	struct dp_install_result results[8] = {{NULL}};
	tr_ok(pr_install(t, ask, n, results));
	for (unsigned i = 0; i < n; i++)
		tr_ok(results[i].refused);
}

void pr_attach(pid_t pid, const char *manifest)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, (const struct pr_ask[]){{PR_FOO, false}, {PR_BAR, false}}, 2);
	tr_ok(dp_target_keep(t, manifest));
	dp_target_close(t);
}

void pr_attach_one(pid_t pid, unsigned which, const char *manifest)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, &(const struct pr_ask){which, false}, 1);
	tr_ok(dp_target_keep(t, manifest));
	dp_target_close(t);
}

static size_t count_lines(pid_t pid, const char *with)
{
	char path[64], line[512];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, with) != NULL;
	fclose(f);
	return n;
}

size_t pr_mappings(pid_t pid)
{
	return count_lines(pid, "/memfd:dynprobe");
}

size_t pr_lines(pid_t pid)
{
	return count_lines(pid, "");
}

size_t pr_descriptors(pid_t pid)
{
	char path[64];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	cr_assert_not_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void pr_goes_on(void)
{
	const long before = tr->calls;
	cr_assert(tr_await_value(&tr->calls, before + 1000), "the target hangs");
	cr_assert_eq(tr->failed, 0, "%ld wrong results", tr->failed);
}
