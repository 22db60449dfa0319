/* SPDX-License-Identifier: MIT */
/*
 * torture (--pid N | -- COMMAND...) [--seconds S] [--seed X] [--batch N] [--module GLOB]
 *         [--fields none|regs|memory|backtrace|all] [--stay MS] [--tactic NAME]... [--batches DIR]
 *         [--replay FILE [--only FIRST-LAST]] [--log FILE] [--report FILE]
 *
 * Ends with the time or with the target. Exit status: that of the command (128 + signal), 0 with --pid; 125 if the instrument
 * itself failed or found text that differs from its file. The caller must check the target's own results.
 */
#include "tests/torture/torture.h"
#include "injector/tracee/stop/freeze.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN_FAILURE 125
#define KEEP        24 /* batches that are kept: damage may show late */

struct torture {
	struct options o;
	struct hot *hot;
	struct tally sum;
	uint64_t random;
	size_t round;
	int status; /* of the command */
	bool reaped;
};

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- options ---- */

static const struct option longs[] = {
        {"pid", required_argument, NULL, 'p'},     {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'x'},    {"batch", required_argument, NULL, 'b'},
        {"module", required_argument, NULL, 'm'},  {"fields", required_argument, NULL, 'f'},
        {"stay", required_argument, NULL, 't'},    {"tactic", required_argument, NULL, 'T'},
        {"batches", required_argument, NULL, 'd'}, {"replay", required_argument, NULL, 'r'},
        {"only", required_argument, NULL, 'o'},    {"log", required_argument, NULL, 'l'},
        {"report", required_argument, NULL, 'R'},  {NULL, 0, NULL, 0},
};

static void usage(const char *what)
{
	fprintf(stderr, "torture: %s is not understood; the options are named at the top of tests/torture/torture.c\n", what);
	exit(OWN_FAILURE);
}

static int mode_of(const char *name)
{
	int i = 0;
	while (i < MODE_COUNT && strcmp(name, mode_name[i]))
		i++;
	if (i == MODE_COUNT && strcmp(name, "all"))
		usage(name);
	return i;
}

static void take_tactic(struct options *o, const char *name)
{
	enum dp_tactic tactic;
	if (!dp_tactic_find(name, &tactic))
		usage(name);
	o->tactics |= 1u << tactic;
}

static void take_text(struct options *o, int option, const char *value)
{
	switch (option) {
	case 'm':
		o->module = value;
		break;
	case 'd':
		o->batches = value;
		break;
	case 'r':
		o->replay = value;
		break;
	case 'R':
		o->report = value;
		break;
	case 'l':
		o->log = fopen(value, "ae");
		break;
	default:
		usage(value ? value : "an option");
	}
}

static void take_option(struct options *o, int option, const char *value)
{
	switch (option) {
	case 'p':
		o->pid = atoi(value);
		break;
	case 's':
		o->seconds = atof(value);
		break;
	case 'x':
		o->seed = strtoull(value, NULL, 0);
		break;
	case 'b':
		o->batch = strtoul(value, NULL, 0);
		break;
	case 'f':
		o->mode = mode_of(value);
		break;
	case 't':
		o->stay_ms = (unsigned)atoi(value);
		break;
	case 'T':
		take_tactic(o, value);
		break;
	case 'o':
		if (sscanf(value, "%zu-%zu", &o->first, &o->last) != 2)
			usage(value);
		break;
	default:
		take_text(o, option, value);
	}
}

static void parse(int argc, char **argv, struct options *o)
{
	*o = (struct options){.seconds = 10,
	                      .seed = 1,
	                      .batch = 500,
	                      .module = "*",
	                      .mode = MODE_COUNT,
	                      .stay_ms = 40,
	                      .last = SIZE_MAX,
	                      .log = stderr};
	for (int c; (c = getopt_long(argc, argv, "+", longs, NULL)) != -1;)
		take_option(o, c, optarg);
	if (optind < argc)
		o->command = argv + optind;
	if (!o->log || !o->batch || o->batch > 20000 || !o->pid == !o->command)
		usage("the command line");
	setvbuf(o->log, NULL, _IOLBF, 0);
}

/* ---- one round ---- */

static struct dp_error *open_target(struct torture *t, enum mode mode, struct dp_target **ret)
{
	const struct dp_target_options options = {.need_unwind = mode == MODE_BACKTRACE};
	if (t->o.pid)
		return dp_target_open(t->o.pid, &options, ret);
	DP_TRY(dp_target_launch(t->o.command, &options, ret));
	t->o.pid = dp_target_pid(*ret);
	return NULL;
}

static struct dp_error *choose(struct torture *t, uint64_t seed, struct round *r)
{
	char path[4096];
	struct dp_image *image = dp_target_image(r->target);
	if (t->o.replay)
		return batch_load(image, &t->o, &r->batch);
	DP_TRY(batch_choose(image, &t->o, t->hot, seed, &r->batch));
	if (!t->o.batches)
		return NULL;
	snprintf(path, sizeof(path), "%s/round-%zu", t->o.batches, t->round - KEEP);
	if (t->round >= KEEP)
		unlink(path);
	snprintf(path, sizeof(path), "%s/round-%zu", t->o.batches, t->round);
	return batch_save(&r->batch, path, seed);
}

static void learn(struct torture *t, const struct round *r)
{
	for (size_t i = 0; i < r->batch.n; i++)
		if (r->hits[i])
			hot_add(t->hot, &r->batch.place[i]);
}

static struct dp_error *play(struct torture *t, struct round *r)
{
	const uint64_t seed = random_next(&t->random);
	DP_TRY(choose(t, seed, r));
	r->hits = calloc(r->batch.n + 1, sizeof(*r->hits));
	if (!r->hits)
		return dp_error_nomem();
	fprintf(t->o.log, "round %zu, seed 0x%" PRIx64 ", %s\n", t->round, seed, mode_name[r->mode]);
	bool in_time = false;
	struct dp_error *err = round_run(r, &in_time);
	learn(t, r);
	if (in_time)
		round_compare(r);
	free(r->hits);
	return err;
}

static bool ends_it(enum dp_tag tag)
{
	return tag == DP_TAG_GONE || tag == DP_TAG_NO_PROCESS || tag == DP_TAG_ZOMBIE;
}

static bool may_pass(enum dp_tag tag)
{
	return tag == DP_TAG_NO_THREAD || tag == DP_TAG_UNSTOPPABLE || tag == DP_TAG_VFORK || tag == DP_TAG_CHANGED ||
	       tag == DP_TAG_TRACED || tag == DP_TAG_BAD_ELF || tag == DP_TAG_NO_MODULE;
}

/*
 * The tactics change after all modes had a turn. Checking a window reads the whole module, and traps need hooks on the program's
 * system calls, so each of the two gets one turn in four.
 */
static unsigned tactics_of_turn(size_t turn)
{
	return turn == 3 ? 0 : turn == 1 ? DP_TACTICS_LIVE | 1u << DP_TACTIC_TRAP : DP_TACTICS_LIVE;
}

/* Returns NULL to continue. */
static struct dp_error *once(struct torture *t)
{
	struct tally one = {0};
	struct round r = {.o = &t->o, .tally = &one};
	r.mode = t->o.mode == MODE_COUNT ? (enum mode)((t->round + t->o.seed) % MODE_COUNT) : (enum mode)t->o.mode;
	r.tactics = t->o.tactics ? t->o.tactics : tactics_of_turn(t->round / MODE_COUNT % 4);
	struct dp_error *err = open_target(t, r.mode, &r.target);
	if (!err)
		err = play(t, &r);
	if (err && may_pass(err->tag)) {
		one.no_open[err->tag]++;
		err = dp_error_destroy(err);
		usleep(2000);
	}
	fprintf(t->o.log, "    ");
	tally_print(&one, t->o.log);
	tally_add(&t->sum, &one);
	batch_fini(&r.batch);
	dp_target_close(r.target);
	t->round++;
	return err;
}

/* ---- the whole ---- */

static bool command_ended(struct torture *t)
{
	if (t->o.command && t->o.pid && !t->reaped && waitpid(t->o.pid, &t->status, WNOHANG) == t->o.pid)
		t->reaped = true;
	return t->reaped;
}

static struct dp_error *all(struct torture *t)
{
	const double end = now() + t->o.seconds;
	struct dp_error *err = NULL;
	while (!err && !stop && now() < end && !command_ended(t))
		err = once(t);
	return err && ends_it(err->tag) ? dp_error_destroy(err) : err;
}

static int command_status(struct torture *t)
{
	if (!t->o.command || !t->o.pid)
		return 0;
	while (!command_ended(t)) {
		if (kill(t->o.pid, 0))
			return OWN_FAILURE;
		dp_late_stop_reap(); /* a traced thread that has died must be reaped, or its process does not end */
		usleep(1000);
	}
	return WIFSIGNALED(t->status) ? 128 + WTERMSIG(t->status) : WEXITSTATUS(t->status);
}

static void report(const struct torture *t)
{
	FILE *f = t->o.report ? fopen(t->o.report, "we") : NULL;
	fprintf(t->o.log, "sum of %zu rounds, seed %" PRIu64 ": ", t->sum.rounds, t->o.seed);
	tally_print(&t->sum, t->o.log);
	if (!f)
		return;
	tally_json(&t->sum, f);
	fclose(f);
}

int main(int argc, char **argv)
{
	struct torture t = {0};
	parse(argc, argv, &t.o);
	t.random = t.o.seed;
	signal(SIGTERM, on_term);
	t.hot = hot_create();
	struct dp_error *err = all(&t);
	if (err)
		dp_error_print(err, t.o.log);
	const int status = command_status(&t);
	report(&t);
	const bool failed = err || t.sum.changed_bytes;
	dp_error_destroy(err);
	hot_destroy(t.hot);
	return failed ? OWN_FAILURE : status;
}
