/* SPDX-License-Identifier: MIT */
/*
 * Differential test of relocation: every form of instruction in the given files, and random encodings, run from random states at
 * their own address and moved. The general registers, flags, x87, MXCSR, vector and mask registers, memory, the final pc and the
 * fault must be the same.
 *
 *     relocate_diff [--seed N] [--states N] [--rounds N] [--random N] [--seconds N] [--bytes HEX] [FILE...]
 *
 * FILEs default to the C library. Prints each difference with the options that repeat it. Exit status 1 if there is one.
 */
#include "trial.h"

#include <getopt.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REASONS 64
#define SHOWN   40

struct reason {
	char why[160], example[DP_INSN_TEXT];
	uint64_t n;
};

struct shared {        /* outlives the process that runs the code */
	uint64_t item; /* the current item; all before it are done */
	uint64_t seed; /* of the trial */
	uint8_t bytes[DP_INSN_MAX];
	uint64_t placements, cases, faults, unknown, endless, known, different, deaths;
	struct reason unfit[REASONS], refused[REASONS];
	bool done;
};

struct options {
	uint64_t seed, states, rounds, random, seconds;
	bool replay;
	uint8_t bytes[DP_INSN_MAX];
	size_t n;
};

static struct shared *shared;
static struct options options = {.states = 6, .rounds = 1};
static struct forms forms;
static struct form **list; /* of the table's used slots */
static uint8_t *form_ran;  /* shared as well */
static time_t end;

static void count(struct reason *reasons, const char *why, const struct dp_insn *insn)
{
	for (int i = 0; i < REASONS; i++) {
		if (!*reasons[i].why) {
			snprintf(reasons[i].why, sizeof(reasons[i].why), "%s", why);
			dp_insn_text(insn, reasons[i].example);
		}
		if (!strcmp(reasons[i].why, why)) {
			reasons[i].n++;
			return;
		}
	}
}

static void print_case(const char *title, const struct trial *t, const char *what)
{
	char name[DP_INSN_TEXT];
	if (shared->different + shared->deaths > SHOWN)
		return;
	printf("%s: %s, moved to 0x%llx: %s\n  repeat: --seed %llu --bytes '", title, dp_insn_text(&t->insn, name),
	       (unsigned long long)t->to, what, (unsigned long long)shared->seed);
	for (int i = 0; i < t->insn.len; i++)
		printf("%02x ", shared->bytes[i]);
	printf("'\n  moved:");
	for (size_t i = 0; i < t->moved.len; i++)
		printf(" %02x", t->moved.data[i]);
	printf("\n");
	fflush(stdout);
}

/* ---- the process that runs the code ------------------------------------------------------------------------------------- */

static bool run_states(const struct trial *t, uint64_t *seed)
{
	char what[160] = "";
	bool ran = false;
	trial_memory(seed);
	for (uint64_t i = 0; i < options.states; i++) {
		bool faulted = false;
		const enum outcome o = trial_run(t, seed, &faulted, what);
		shared->cases++;
		shared->faults += faulted;
		ran = ran || !faulted;
		shared->known += o == OUTCOME_KNOWN;
		shared->endless += o == OUTCOME_ENDLESS;
		if (o == OUTCOME_ENDLESS) {
			print_case("ENDLESS", t, "neither ends");
			return ran;
		}
		if (o == OUTCOME_DIFFERENT) {
			shared->different++;
			print_case("DIFFERENT", t, what);
			return ran;
		}
	}
	return ran;
}

/* True if some state executed the instruction, or it can only fault. */
static bool try_one(const uint8_t *bytes, size_t n, uint64_t trial_seed)
{
	struct trial t;
	uint64_t seed = trial_seed;
	char why[160];
	bool ran = false;
	shared->seed = trial_seed;
	memset(shared->bytes, 0, DP_INSN_MAX);
	memcpy(shared->bytes, bytes, n);
	const enum outcome o = trial_prepare(&t, bytes, n, &seed, why);
	shared->unknown += o == OUTCOME_UNKNOWN;
	if (o == OUTCOME_UNFIT)
		count(shared->unfit, why, &t.insn);
	if (o == OUTCOME_REFUSED)
		count(shared->refused, why, &t.insn);
	if (o == OUTCOME_SAME) {
		shared->placements++;
		ran = run_states(&t, &seed);
	}
	trial_fini(&t);
	return ran;
}

static uint64_t seed_of(uint64_t item)
{
	uint64_t s = options.seed ^ (item + 1) * UINT64_C(0x9e3779b97f4a7c15);
	random_next(&s);
	return s | 1;
}

/* Items: first every sample of every form, `rounds` times over; then random encodings. */
static void run_item(uint64_t item)
{
	const uint64_t per_round = forms.n * FORM_SAMPLES;
	uint64_t seed = seed_of(item);
	if (item < per_round * options.rounds) {
		const size_t index = item % per_round / FORM_SAMPLES, sample = item % FORM_SAMPLES;
		const struct form *f = list[index];
		if (sample < f->nsamples && try_one(f->bytes[sample], DP_INSN_MAX, seed))
			form_ran[index] = 1;
		return;
	}
	uint8_t bytes[DP_INSN_MAX];
	random_encoding(&seed, bytes);
	try_one(bytes, sizeof(bytes), seed | 1);
}

static bool more(uint64_t item)
{
	const uint64_t all = forms.n * FORM_SAMPLES * options.rounds;
	if (item < all)
		return true;
	return options.seconds ? time(NULL) < end : item < all + options.random;
}

static void work(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!machine_setup()) {
		fprintf(stderr, "relocate_diff: this processor or address space does not do\n");
		_exit(3);
	}
	if (options.replay) {
		shared->item++;
		try_one(options.bytes, options.n, options.seed);
	} else {
		while (more(shared->item))
			run_item(shared->item++);
	}
	shared->done = true;
	fflush(stdout);
	_exit(0);
}

/* ---- the process that watches ------------------------------------------------------------------------------------------- */

static void watch(void)
{
	while (!shared->done) {
		int status;
		fflush(stdout);
		pid_t pid = fork();
		if (!pid)
			work();
		if (pid < 0 || waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status)))
			exit(2);
		if (shared->done)
			return;
		shared->deaths++;
		printf("DIED of signal %d: --seed %llu --bytes '", WTERMSIG(status), (unsigned long long)shared->seed);
		for (int i = 0; i < DP_INSN_MAX; i++)
			printf("%02x ", shared->bytes[i]);
		printf("'\n");
		if (options.replay || shared->deaths > SHOWN)
			return;
	}
}

static void *share(size_t n)
{
	void *p = mmap(NULL, n + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(2);
	return p;
}

static void print_reasons(const char *title, const struct reason *reasons)
{
	for (int i = 0; i < REASONS && *reasons[i].why; i++)
		printf("%s %8llu: %s (%s)\n", title, (unsigned long long)reasons[i].n, reasons[i].why, reasons[i].example);
}

static int report(void)
{
	size_t ran = 0;
	for (size_t i = 0; i < forms.n; i++)
		ran += form_ran[i];
	print_reasons("not run", shared->unfit);
	print_reasons("not moved", shared->refused);
	printf("seed %llu: %zu forms of %zu instructions, %zu of them ran to their end; %llu placements, %llu cases compared "
	       "(%llu ended by a fault "
	       "of the instruction), %llu unknown to the decoders, %llu endless, %llu known, %llu DIFFERENCES, %llu deaths\n",
	       (unsigned long long)options.seed, forms.n, forms.instructions, ran, (unsigned long long)shared->placements,
	       (unsigned long long)shared->cases, (unsigned long long)shared->faults, (unsigned long long)shared->unknown,
	       (unsigned long long)shared->endless, (unsigned long long)shared->known, (unsigned long long)shared->different,
	       (unsigned long long)shared->deaths);
	return shared->different || shared->deaths || (!shared->cases && !options.replay);
}

static int add_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	return strstr(info->dlpi_name, "/libc.so") && forms_add_file(&forms, info->dlpi_name);
}

static void parse_bytes(const char *hex)
{
	options.replay = true;
	for (unsigned v, used = 0; options.n < DP_INSN_MAX && sscanf(hex, " %2x%n", &v, (int *)&used) == 1; hex += used)
		options.bytes[options.n++] = (uint8_t)v;
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {{"seed", 1, NULL, 's'},   {"states", 1, NULL, 'n'},  {"rounds", 1, NULL, 'r'},
	                                      {"random", 1, NULL, 'x'}, {"seconds", 1, NULL, 't'}, {"bytes", 1, NULL, 'b'},
	                                      {NULL, 0, NULL, 0}};
	options.seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	for (int c; (c = getopt_long(argc, argv, "s:n:r:x:t:b:", names, NULL)) != -1;) {
		uint64_t *const value = c == 's'   ? &options.seed
		                        : c == 'n' ? &options.states
		                        : c == 'r' ? &options.rounds
		                        : c == 'x' ? &options.random
		                        : c == 't' ? &options.seconds
		                                   : NULL;
		if (c == 'b')
			parse_bytes(optarg);
		else if (value)
			*value = strtoull(optarg, NULL, 0);
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	for (int i = optind; i < argc; i++)
		if (!forms_add_file(&forms, argv[i]))
			return 2;
	if (optind == argc && !options.replay && !dl_iterate_phdr(add_libc, NULL))
		return 2;
	list = calloc(forms.n + 1, sizeof(*list));
	if (!list)
		return 2;
	for (size_t i = 0, n = 0; i < forms.cap; i++)
		if (forms.slot[i].key)
			list[n++] = &forms.slot[i];
	shared = share(sizeof(*shared));
	form_ran = share(forms.n);
	end = time(NULL) + (time_t)options.seconds;
	watch();
	const int status = report();
	free(list);
	forms_fini(&forms);
	return status;
}
