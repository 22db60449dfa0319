/* SPDX-License-Identifier: MIT */
#include "helper_probe.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".pushsection .text\n"
        ".balign 64\n"
        ".globl pr_foo, pr_bar, pr_baz\n"
        ".type pr_foo, @function\n"
        "pr_foo:\n"
        ".cfi_startproc\n"
        "	movl $7, %eax\n"
        "	addl %edi, %eax\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size pr_foo, . - pr_foo\n"
        ".balign 64\n"
        ".type pr_bar, @function\n"
        "pr_bar:\n"
        ".cfi_startproc\n"
        "	movl $-3, %eax\n"
        "	imull %edi, %eax\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size pr_bar, . - pr_bar\n"
        ".balign 64\n"
        ".type pr_baz, @function\n"
        "pr_baz:\n"
        ".cfi_startproc\n"
        "	leal 1(%rdi), %eax\n"
        "	leal 0x100(%rax), %eax\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size pr_baz, . - pr_baz\n"
        ".popsection\n");

static void hook(void)
{
	while (tr->value[PR_HOLD]) {
		tr->value[PR_HELD] = 1;
		tr_sleep_us(500);
	}
}

static const struct {
	int (*function)(int);
	size_t n;
	uint8_t bytes[16];
} functions[] = {
        {pr_foo, 8, {0xb8, 7, 0, 0, 0, 0x01, 0xf8, 0xc3}},
        {pr_bar, 9, {0xb8, 0xfd, 0xff, 0xff, 0xff, 0x0f, 0xaf, 0xc7, 0xc3}},
        {pr_baz, 10, {0x8d, 0x47, 0x01, 0x8d, 0x80, 0, 1, 0, 0, 0xc3}},
};

uint64_t pr_addr(unsigned which)
{
	return (uint64_t)(uintptr_t)functions[which].function;
}

static const uint8_t *bytes_of(unsigned which)
{
	return functions[which].bytes;
}

static size_t size_of(unsigned which)
{
	return functions[which].n;
}

bool pr_original(pid_t pid, unsigned which)
{
	uint8_t now[16];
	struct dp_process p = {.pid = pid, .alive = pid};
	const size_t n = size_of(which);
	cr_assert_eq(dp_mem_read(&p, dp_addr_of(pr_addr(which)), now, n), n);
	return !memcmp(now, bytes_of(which), n);
}

static void *call(void *none)
{
	int (*volatile foo)(int) = pr_foo, (*volatile bar)(int) = pr_bar, (*volatile baz)(int) = pr_baz;
	(void)none;
	for (int i = 0;; i = (i + 1) & 0xffff) {
		if (foo(i) != i + 7 || bar(i) != -3 * i || baz(i) != i + 0x101)
			tr->failed++;
		tr->calls++;
	}
	return NULL;
}

void pr_calling(void)
{
	tr->ready = 1;
	call(NULL);
}

static pthread_barrier_t started;

static void *start_calling(void *none)
{
	pthread_barrier_wait(&started);
	return call(none);
}

/* Sets ready when all threads have started, sanitizers' part included: tests count the mappings. */
void pr_calling_threads(void)
{
	pthread_barrier_init(&started, NULL, 4);
	for (int i = 1; i < 4; i++) {
		pthread_t t;
		pthread_create(&t, NULL, start_calling, NULL);
	}
	pthread_barrier_wait(&started);
	pr_calling();
}

struct dp_target *pr_open(pid_t pid, const struct dp_target_options *options)
{
	struct dp_target *t = NULL;
	tr_ok(dp_target_open(pid, options, &t));
	return t;
}

static struct dp_error *plan(struct dp_target *t, struct dp_planner *planner, uint64_t lost, const struct pr_ask *ask, unsigned i,
                             struct dp_plan *ret)
{
	const struct dp_segment segment = {pr_addr(ask->which), bytes_of(ask->which), size_of(ask->which), true};
	const struct dp_text text = {.segment = &segment, .nsegments = 1, .function = segment.addr, .size = segment.n};
	struct dp_fields fields = {0};
	const uint64_t gates = dp_target_gates(t);
	const struct dp_request request = {
	        .site = segment.addr,
	        .probe = ask->own ? DP_NO_PROBE : (uint16_t)i,
	        .lost = lost + i * sizeof(struct dp_lost),
	        .text = &text,
	        .fields = &fields,
	        .gate = {ask->own || !gates ? 0 : gates + 4 * i},
	        .hook = ask->own ? (uint64_t)(uintptr_t)hook : 0,
	};
	tr_ok(dp_fields_add(&fields, "reg:rdi"));
	struct dp_error *err = dp_planner_add(planner, &request, ret);
	dp_fields_fini(&fields);
	return err;
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
		tr_ok(plan(t, planner, lost, &ask[i], i, &plans[i]));
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

/* ---- counting ----------------------------------------------------------------------------------------------------------- */

#define RESTS 8 /* tr->value[RESTS + k]: how often thread k had nothing to do */

static void *counting(void *mine)
{
	int (*volatile foo)(int) = pr_foo;
	const long k = (long)mine;
	for (int i = 0;;) {
		if (i < tr->value[PR_LIMIT]) {
			tr->failed += foo(i) != i + 7;
			tr->value[k] = ++i;
		} else {
			tr->value[RESTS + k]++;
			tr_sleep_us(200);
		}
	}
	return NULL;
}

void pr_counting(void)
{
	tr->value[PR_LIMIT] = 0;
	for (long i = 1; i < PR_THREADS; i++) {
		pthread_t t;
		pthread_create(&t, NULL, counting, (void *)i);
	}
	tr->ready = 1;
	counting(NULL);
}

void pr_count_to(long n)
{
	tr->value[PR_LIMIT] = n;
	for (int k = 0; k < PR_THREADS; k++)
		cr_assert(tr_await_value(&tr->value[k], n), "thread %d counted only to %ld", k, tr->value[k]);
	cr_assert_eq(tr->failed, 0);
}

void pr_count_no_more(void)
{
	tr->value[PR_LIMIT] = 0;
	for (int k = 0; k < PR_THREADS; k++)
		cr_assert(tr_await_value(&tr->value[RESTS + k], tr->value[RESTS + k] + 1), "thread %d still makes calls", k);
}

/* ---- inspecting the process --------------------------------------------------------------------------------------------- */

struct line {
	unsigned long start, end, offset;
	char perms[8], path[400];
};

/* After page replacement /proc/PID/maps shows one text mapping as several adjacent lines: they count as one. */
static bool goes_on(const struct line *last, const struct line *now)
{
	return now->path[0] == '/' && now->start == last->end && now->offset == last->offset + (last->end - last->start) &&
	       !strcmp(now->path, last->path) && !strcmp(now->perms, last->perms);
}

static struct line parse(const char *text)
{
	struct line l = {0};
	sscanf(text, "%lx-%lx %7s %lx %*s %*s %399[^\n]", &l.start, &l.end, l.perms, &l.offset, l.path);
	return l;
}

static size_t count_lines(pid_t pid, const char *with)
{
	char path[64], line[512];
	size_t n = 0;
	struct line last = {0};
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		const struct line now = parse(line);
		n += strstr(line, with) && !goes_on(&last, &now);
		last = now;
	}
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

static uint64_t losses(struct dp_resident *s, unsigned probe)
{
	struct dp_loss loss;
	dp_resident_loss(s, probe, &loss);
	return loss.full + loss.overwritten;
}

bool pr_is_hit(struct dp_resident *s, unsigned probe)
{
	const uint64_t before = losses(s, probe);
	for (int i = 0; i < 200 && losses(s, probe) == before; i++)
		tr_await_value(&tr->calls, tr->calls + 1000);
	return losses(s, probe) != before;
}

/* Changes the user of the test's own process: in a forked process, a failed assertion would wait forever. */
void pr_as_nobody(void (*target)(void), void (*tool)(pid_t))
{
	cr_assert(setgid(65534) == 0 && setuid(65534) == 0);
	prctl(PR_SET_DUMPABLE, 1);
	pid_t child = tr_spawn(target);
	tool(child);
	cr_assert_gt(tr->calls + tr->value[0], 0);
	tr_kill(child);
}

struct dp_resident *pr_only(struct dp_target *t)
{
	cr_assert_eq(dp_target_nresidents(t), 1);
	return dp_target_resident(t, 0);
}

struct dp_resident *pr_named(struct dp_target *t, const char *manifest)
{
	for (size_t i = 0; i < dp_target_nresidents(t); i++)
		if (!strcmp(dp_resident_manifest(dp_target_resident(t, i)), manifest))
			return dp_target_resident(t, i);
	return NULL;
}
