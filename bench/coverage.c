/* SPDX-License-Identifier: MIT */
/*
 * How many instructions of a live process's module can be probed, and by which tactic:
 *
 *     coverage --pid N [--module GLOB] [--alone] [--batch [N]] [--all] [--rounds N] [--sample N] [--seed N]
 *              [--tactics LIST] [--order random|ascending|descending] [-j] [--plans]
 *
 * Asks the planner about each instruction alone, in random batches, and about all at once, and checks every plan
 * (coverage_check.c). Only reads the process's maps and files. Exit status 1 if a plan violates its contract.
 * --plans prints each plan on one line, to compare two versions.
 * --order is the order of the sites in a batch (the choice of sites is random): from high to low addresses by default.
 */
#include "coverage.h"

#include "trampoline/space/space.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
	int pid;
	const char *module;
	bool alone, all, json;
	char order; /* for --all and in each batch: random, ascending, descending */
	size_t batch, rounds, sample;
	uint64_t seed;
	unsigned tactics;
};

/* Addresses as far from all code as those that the tool uses. */
static const struct dp_runtime runtime = {
        .agent = 0x300000400000,
        .acquire = 0x300000000100,
        .read = 0x300000000200,
        .string = 0x300000000300,
        .backtrace = 0x300000000400,
        .finish = 0x300000000500,
        .tid_offset = 0x2d0,
};
static const struct dp_fields no_fields;

static void fail(struct dp_error *err)
{
	dp_error_print(err, stderr);
	exit(2);
}

static void must(struct dp_error *err)
{
	if (err)
		fail(err);
}

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);
	if (!p)
		fail(dp_error_nomem());
	return p;
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* without the time of other processes */
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static int ascending(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

static int descending(const void *a, const void *b)
{
	return ascending(b, a);
}

static void shuffle(size_t *order, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t k = random_number(&seed) % i, kept = order[i - 1];
		order[i - 1] = order[k];
		order[k] = kept;
	}
}

/* ---- asking ----------------------------------------------------------------------------------------------------------- */

static struct dp_request request_for(const struct code *code, size_t i, unsigned tactics)
{
	return (struct dp_request){.site = code->site[i].addr,
	                           .probe = (uint16_t)(i % DP_NO_PROBE),
	                           .lost = 0x300000800000,
	                           .text = code->site[i].text,
	                           .fields = &no_fields,
	                           .tactics = tactics};
}

static bool print_plans;

static void print_plan(const struct dp_plan *plan)
{
	printf("plan %llx %s %u/%u stub %llx-%llx entry %llx via %llx", (unsigned long long)plan->site,
	       dp_tactic_name(plan->tactic), plan->changed, plan->len, (unsigned long long)plan->stub,
	       (unsigned long long)plan->stub_end, (unsigned long long)plan->entry, (unsigned long long)plan->springboard);
	for (uint8_t i = 0; i < plan->len; i++)
		printf("%s%02x>%02x", i ? " " : ": ", plan->old_bytes[i], plan->new_bytes[i]);
	for (uint8_t i = 0; i < plan->nsupports; i++)
		printf(" on %llx", (unsigned long long)plan->support[i]);
	printf("\n");
}

static void finish_round(struct tally *t, struct code *code, struct dp_planner *planner)
{
	struct layout layout;
	layout.nplans = dp_planner_plans(planner, &layout.plan);
	for (size_t i = 0; print_plans && i < layout.nplans; i++)
		print_plan(&layout.plan[i]);
	layout.nextents = dp_planner_extents(planner, &layout.extent);
	tally_layout(t, &layout);
	t->violations += check_layout(code, code->image, &layout);
}

/* Adds all sites to one planner. Counts the final tactics: a later request may change the plan of an earlier one. */
static void ask_together(struct tally *t, struct code *code, const size_t *order, size_t n, unsigned tactics)
{
	struct dp_space *space;
	struct dp_planner *planner;
	struct dp_request *request = allocate(n, sizeof(*request));
	const struct dp_plan *plan;
	must(dp_space_from_image(code->image, &space));
	must(dp_planner_create(space, &runtime, &planner));
	for (size_t i = 0; i < n; i++) {
		struct dp_plan ignored;
		request[i] = request_for(code, order[i], tactics);
		double start = now();
		struct dp_error *err = dp_planner_add(planner, &request[i], &ignored);
		t->seconds += now() - start;
		if (err)
			tally_refused(t, code, &code->site[order[i]], err);
	}
	const size_t nplans = dp_planner_plans(planner, &plan);
	for (size_t i = 0; i < nplans; i++)
		if (plan[i].probe != DP_NO_PROBE)
			tally_placed(t, plan[i].tactic);
	finish_round(t, code, planner);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
	free(request);
}

static void give_back(struct dp_space *space, struct dp_planner *planner)
{
	const struct dp_extent *extent;
	const size_t n = dp_planner_extents(planner, &extent);
	for (size_t i = 0; i < n; i++)
		if (!dp_space_release(space, extent[i].addr, extent[i].addr + extent[i].n))
			fail(dp_error(DP_TAG_NOMEM, "the address model is out of memory"));
}

static void run_alone(struct code *code, const struct options *o, const size_t *order, size_t n)
{
	struct tally t = {.mode = "alone"};
	struct dp_space *space;
	must(dp_space_from_image(code->image, &space));
	for (size_t i = 0; i < n; i++) {
		struct dp_request request = request_for(code, order[i], o->tactics);
		struct dp_planner *planner;
		struct dp_plan plan;
		must(dp_planner_create(space, &runtime, &planner));
		double start = now();
		struct dp_error *err = dp_planner_add(planner, &request, &plan);
		t.seconds += now() - start;
		if (err) {
			tally_refused(&t, code, &code->site[order[i]], err);
		} else {
			tally_placed(&t, plan.tactic);
			finish_round(&t, code, planner);
			give_back(space, planner);
		}
		dp_planner_destroy(planner);
	}
	dp_space_destroy(space);
	report_tally(&t, code, o->json);
	code->nviolations += t.violations;
	tally_fini(&t);
}

static void run_together(struct code *code, const struct options *o, size_t *order, size_t n, size_t batch)
{
	char mode[40] = "all at once";
	struct tally t = {.mode = mode};
	if (batch < code->nsites)
		snprintf(mode, sizeof(mode), "batches of %zu", batch);
	for (size_t at = 0, round = 0; at < n && (!o->rounds || round < o->rounds); at += batch, round++) {
		const size_t some = n - at < batch ? n - at : batch;
		if (o->order != 'r')
			qsort(order + at, some, sizeof(*order), o->order == 'a' ? ascending : descending);
		ask_together(&t, code, order + at, some, o->tactics);
	}
	report_tally(&t, code, o->json);
	code->nviolations += t.violations;
	tally_fini(&t);
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

static struct dp_image *open_image(int pid)
{
	char path[64], root[64];
	size_t n = 0, cap = 1 << 20;
	struct dp_image *image;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		fail(dp_error_sys(DP_TAG_NO_PROCESS, "%s", path));
	char *text = allocate(cap, 1);
	for (size_t got; (got = fread(text + n, 1, cap - n, f)) > 0; n += got)
		if (n + got == cap)
			fail(dp_error(DP_TAG_NOMEM, "%s is longer than %zu bytes", path, cap));
	fclose(f);
	must(dp_image_create(text, root, pid, &image));
	free(text);
	return image;
}

static struct dp_module *find_module(struct dp_image *image, const char *glob)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (!glob || !fnmatch(glob, dp_module_name(dp_image_module(image, i)), 0))
			return dp_image_module(image, i);
	fail(dp_error(DP_TAG_NO_SYMBOL, "the process has no module %s", glob));
	return NULL;
}

static unsigned parse_tactics(char *list)
{
	unsigned set = 0;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		enum dp_tactic tactic;
		if (!dp_tactic_find(name, &tactic))
			fail(dp_error(DP_TAG_USAGE, "there is no tactic %s", name));
		set |= 1U << tactic;
	}
	return set;
}

static struct options parse(int argc, char **argv)
{
	struct options o = {.order = 'd', .seed = 1, .tactics = DP_TACTICS_JUMPS | 1U << DP_TACTIC_TRAP};
	static const struct option names[] = {{"pid", 1, NULL, 'p'},    {"module", 1, NULL, 'm'}, {"alone", 0, NULL, 'a'},
	                                      {"batch", 2, NULL, 'b'},  {"all", 0, NULL, 'A'},    {"rounds", 1, NULL, 'r'},
	                                      {"sample", 1, NULL, 's'}, {"seed", 1, NULL, 'S'},   {"tactics", 1, NULL, 't'},
	                                      {"order", 1, NULL, 'o'},  {"json", 0, NULL, 'j'},   {"plans", 0, NULL, 'P'},
	                                      {NULL, 0, NULL, 0}};
	for (int c; (c = getopt_long(argc, argv, "p:m:ab::Ar:s:S:t:o:j", names, NULL)) != -1;) {
		switch (c) {
		case 'p':
			o.pid = atoi(optarg);
			break;
		case 'm':
			o.module = optarg;
			break;
		case 'a':
			o.alone = true;
			break;
		case 'b':
			o.batch = optarg ? strtoull(optarg, NULL, 0) : 1000;
			break;
		case 'A':
			o.all = true;
			break;
		case 'r':
			o.rounds = strtoull(optarg, NULL, 0);
			break;
		case 's':
			o.sample = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			o.seed = strtoull(optarg, NULL, 0) | 1;
			break;
		case 't':
			o.tactics = parse_tactics(optarg);
			break;
		case 'o':
			o.order = *optarg;
			break;
		case 'j':
			o.json = true;
			break;
		case 'P':
			print_plans = true;
			break;
		default:
			exit(2);
		}
	}
	if (!o.pid || !o.tactics || (o.rounds && !o.batch))
		fail(dp_error(DP_TAG_USAGE, "coverage --pid N [--module GLOB] [--alone] [--batch=N [--rounds N]] [--all] [-j]"));
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct dp_image *image = open_image(o.pid);
	struct code code;
	must(code_load(image, find_module(image, o.module), &code));
	size_t *order = allocate(code.nsites, sizeof(*order));
	shuffle(order, code.nsites, o.seed);
	const size_t n = o.sample && o.sample < code.nsites ? o.sample : code.nsites;
	report_code(&code, o.json);
	fflush(stdout);
	if (o.alone)
		run_alone(&code, &o, order, n);
	fflush(stdout);
	if (o.batch)
		run_together(&code, &o, order, n, o.batch);
	fflush(stdout);
	if (o.all)
		run_together(&code, &o, order, code.nsites, code.nsites);
	const bool bad = code.nviolations;
	free(order);
	code_fini(&code);
	dp_image_destroy(image);
	return bad;
}
