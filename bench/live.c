/* SPDX-License-Identifier: MIT */
/*
 * live --pid N < ADDRESSES: installs probes at functions of a running process (addresses as in its file, one per line), removes
 * them, and measures each step. In between it patches and restores one site many times, stops the process as often without a
 * change (the floor of that), and opens and shuts one gate. Prints one JSON object. run_live.py starts the process, and measures
 * what it notices.
 */
#include "session/code/code_view.h"
#include "injector/patch/replace/replace.h"
#include "injector/resident/resident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define MOST      4096u
#define TOGGLE_NS UINT64_C(1000000000)
#define PACE      3000u

struct bench {
	struct dp_target *t;
	struct dp_code_view *view;
	struct dp_space *space;
	struct dp_planner *planner;
	struct dp_fields fields;
	struct dp_text text[MOST];
	uint64_t site[MOST];
	unsigned n, placed;
	struct dp_install_stats install;
	struct dp_remove_report removal;
	uint64_t toggle_held;
};

static void must(struct dp_error *err)
{
	if (!err)
		return;
	dp_error_print(err, stderr);
	exit(1);
}

/* Processor time of this process, which depends less on other load. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void marker(const char *what)
{
	printf("{\"at\": %llu, \"step\": \"%s\"}\n", (unsigned long long)dp_now_ns(), what);
	fflush(stdout);
}

static void read_sites(struct bench *b)
{
	unsigned long long at;
	const int64_t bias = dp_module_bias(dp_image_module(dp_target_image(b->t), 0));
	while (b->n < MOST && scanf("%llx", &at) == 1)
		b->site[b->n++] = at + (uint64_t)bias;
}

static void add(struct bench *b, unsigned i, uint64_t lost)
{
	const struct dp_text *text;
	struct dp_image *image = dp_target_image(b->t);
	struct dp_site site = {.addr = dp_addr_of(b->site[i]), .module = dp_image_module_at(image, dp_addr_of(b->site[i]))};
	struct dp_plan plan;
	dp_image_function_at(image, site.addr, &site.function);
	must(dp_code_view_get(b->view, &site, &text));
	b->text[i] = *text;
	const struct dp_request request = {.site = b->site[i] + dp_text_endbr(text, b->site[i]),
	                                   .probe = (uint16_t)i,
	                                   .lost = lost + i * sizeof(struct dp_lost),
	                                   .text = &b->text[i],
	                                   .fields = &b->fields,
	                                   .tactics = DP_TACTICS_LIVE,
	                                   .gate = {dp_target_gates(b->t) + 4ull * i}};
	dp_error_destroy(dp_planner_add(b->planner, &request, &plan));
}

static void plan(struct bench *b)
{
	struct dp_runtime runtime;
	uint64_t lost;
	must(dp_space_from_image(dp_target_image(b->t), &b->space));
	must(dp_target_prepare(b->t, b->space, b->n, &runtime, &lost));
	must(dp_planner_create(b->space, &runtime, &b->planner));
	for (unsigned i = 0; i < b->n; i++)
		add(b, i, lost);
}

static void install(struct bench *b)
{
	const struct dp_extent *extents;
	const struct dp_plan *plans;
	const size_t nextents = dp_planner_extents(b->planner, &extents), nplans = dp_planner_plans(b->planner, &plans);
	struct dp_install_result *results = calloc(nplans + 1, sizeof(*results));
	if (!results)
		exit(1);
	must(dp_target_install(b->t, extents, nextents, plans, nplans, NULL, 0, results, &b->install));
	for (size_t i = 0; i < nplans; i++) {
		b->placed += !results[i].refused && plans[i].probe != DP_NO_PROBE;
		dp_error_destroy(results[i].refused);
	}
	free(results);
}

/* Sleeps until the n-th step, at `pace` steps a second; not if it is late. */
static void rest(uint64_t from, unsigned n, unsigned pace)
{
	const uint64_t now = dp_now_ns(), next = from + n * UINT64_C(1000000000) / (pace ? pace : 1);
	if (pace && next > now)
		nanosleep(&(struct timespec){0, (long)(next - now)}, NULL);
}

/* Writes the first site's old and new bytes in turn: as fast as possible, or PACE times a second (for the program's gaps). */
static double toggle(struct bench *b, unsigned pace)
{
	const struct dp_placed *p = &b->t->in.placed[0];
	struct dp_replace *s = NULL;
	must(dp_replace_create(b->t, &b->t->in, &s));
	dp_replace_stay_hot(s);
	const uint64_t from = dp_now_ns();
	unsigned n = 0;
	for (; dp_now_ns() - from < TOGGLE_NS || n % 2; n++) {
		const struct dp_replace_edit edit = {p->addr, p->len, 0, p->len, n % 2 ? p->new_bytes : p->old_bytes};
		if (!dp_replace_write(s, &edit))
			exit(1);
		must(dp_replace_commit(s, NULL, &b->toggle_held));
		dp_replace_again(s);
		rest(from, n + 1, pace);
	}
	dp_replace_destroy(s);
	return n * 1e9 / (double)(dp_now_ns() - from);
}

/* The floor of a stop: interrupt, wait, continue. */
static void stop_once(pid_t tid)
{
	struct dp_priority priority;
	siginfo_t si;
	dp_priority_raise(&priority);
	if (!ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		waitid(P_PID, (id_t)tid, &si, WEXITED | WSTOPPED | __WALL);
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
	}
	dp_priority_restore(&priority);
}

static double stop_paced(struct bench *b)
{
	const uint64_t from = dp_now_ns();
	unsigned n = 0;
	while (dp_now_ns() - from < TOGGLE_NS) {
		stop_once(b->t->process.pid);
		rest(from, ++n, PACE);
	}
	return n * 1e9 / (double)(dp_now_ns() - from);
}

static double toggle_gate(struct bench *b, unsigned pace)
{
	const uint64_t from = dp_now_ns(), gate = dp_target_gates(b->t);
	unsigned n = 0;
	while (dp_now_ns() - from < TOGGLE_NS) {
		must(dp_mem_write(&b->t->process, dp_addr_of(gate), &(const uint32_t){n % 2}, 4));
		rest(from, ++n, pace);
	}
	return n * 1e9 / (double)(dp_now_ns() - from);
}

int main(int argc, char **argv)
{
	static struct bench b;
	if (argc != 3 || strcmp(argv[1], "--pid"))
		return 2;
	must(dp_target_open((pid_t)atoi(argv[2]),
	                    &(const struct dp_target_options){.gates = true, .ring_size = 16384, .nslots = 16},
	                    &b.t));
	must(dp_code_view_create(dp_target_image(b.t), &b.view));
	must(dp_fields_add(&b.fields, "reg:rdi"));
	read_sites(&b);
	marker("plan");
	const uint64_t t0 = dp_now_ns();
	plan(&b);
	marker("install");
	const uint64_t t1 = dp_now_ns(), c0 = cpu_ns();
	install(&b);
	const uint64_t t2 = dp_now_ns(), c1 = cpu_ns();
	marker("still");
	nanosleep(&(struct timespec){1, 0}, NULL);
	marker("toggle");
	const double toggles = toggle(&b, 0);
	marker("pace");
	const double paced = toggle(&b, PACE);
	marker("stop");
	const double stops = stop_paced(&b);
	marker("gate");
	const double gates = toggle_gate(&b, 0);
	marker("gate_pace");
	toggle_gate(&b, PACE);
	marker("remove");
	const uint64_t t3 = dp_now_ns(), c2 = cpu_ns();
	must(dp_target_remove(b.t, &b.removal));
	const uint64_t t4 = dp_now_ns(), c3 = cpu_ns();
	marker("end");
	printf("{\"asked\": %u, \"placed\": %u, \"plan_ms\": %.2f, \"install_ms\": %.2f, \"remove_ms\": %.2f, \"held_us\": "
	       "[%.0f, %.0f], "
	       "\"live\": [%d, %d], \"why\": [\"%s\", \"%s\"], \"left\": %zu, \"regions\": %zu, \"toggles\": %.0f, \"paced\": "
	       "%.0f, \"toggle_held_us\": %.0f, \"stops\": %.0f, \"gates\": %.0f, \"cpu_ms\": [%.2f, %.2f]}\n",
	       b.n, b.placed, (double)(t1 - t0) / 1e6, (double)(t2 - t1) / 1e6, (double)(t4 - t3) / 1e6,
	       (double)b.install.pause_ns / 1e3, (double)b.removal.pause_ns / 1e3, b.install.live, b.removal.live,
	       b.install.why_frozen, b.removal.why_frozen, b.removal.left_bytes, b.t->in.nregions, toggles, paced,
	       (double)b.toggle_held / 1e3, stops, gates, (double)(c1 - c0) / 1e6, (double)(c3 - c2) / 1e6);
	dp_target_close(b.t);
	return 0;
}
