/* SPDX-License-Identifier: MIT */
/*
 * sink_driver [-v] [-l LOAD_MS] [-p PRIME_MS] PID | launch COMMAND...: loads the LTTng sink into a process, registers two events,
 * primes its threads, parks one event, and prints the results as one line of JSON. An error is printed as dynprobe prints it,
 * with exit status 1.
 */
#include "injector/injector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t load_ns = UINT64_C(20000000000), prime_ns = UINT64_C(2000000000);

static void say(const char *line, void *data)
{
	(void)data;
	fprintf(stderr, "%s\n", line);
}

static struct dp_error *drive(struct dp_target *t)
{
	struct dp_sink_entries entries;
	struct dp_sink_stats load = {0}, prime = {0};
	struct dp_fields fields = {0};
	DP_TRY(dp_target_sink_check(t));
	DP_TRY(dp_target_sink_load(t, load_ns, &entries, &load));
	DP_TRY(dp_fields_add(&fields, "regs"));
	struct dp_sink_class classes[] = {{.name = "driven_one", .fields = &fields}, {.name = "driven_two", .fields = &fields}};
	DP_TRY(dp_target_sink_register(t, classes, 2));
	for (int i = 0; i < 2; i++)
		if (classes[i].refused)
			return classes[i].refused;
	DP_TRY(dp_target_sink_prime(t, prime_ns, &prime));
	DP_TRY(dp_target_sink_park(t, &classes[1].event, 1));
	dp_fields_fini(&fields);
	printf("{\"fresh\": %s, \"ust_present\": %s, \"load_us\": %" PRIu64 ", \"pause_us\": %" PRIu64
	       ", \"threads\": %zu, \"primed\": %zu, "
	       "\"unprimed\": %zu, \"prime_pause_us\": %" PRIu64 ", \"events\": [%" PRIu64 ", %" PRIu64 "]}\n",
	       entries.fresh ? "true" : "false", entries.ust_present ? "true" : "false", load.load_ns / 1000,
	       load.pause_ns / 1000, prime.threads, prime.primed, prime.unprimed, prime.pause_ns / 1000, classes[0].event,
	       classes[1].event);
	return NULL;
}

static struct dp_error *run(char **argv, const struct dp_target_options *options)
{
	struct dp_target *t = NULL;
	const bool launch = !strcmp(argv[0], "launch");
	DP_TRY(launch ? dp_target_launch(argv + 1, options, &t) : dp_target_open(atoi(argv[0]), options, &t));
	struct dp_error *err = drive(t);
	if (!err && launch)
		err = dp_target_release(t);
	dp_target_close(t);
	return err;
}

int main(int argc, char **argv)
{
	struct dp_target_options options = {0};
	for (int c; (c = getopt(argc, argv, "+vl:p:")) != -1;) {
		if (c == 'v')
			options.verbose = say;
		else if (c == 'l')
			load_ns = strtoull(optarg, NULL, 10) * 1000000;
		else if (c == 'p')
			prime_ns = strtoull(optarg, NULL, 10) * 1000000;
		else
			return 2;
	}
	struct dp_error *err = optind < argc ? run(argv + optind, &options) : NULL;
	if (!err)
		return 0;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return 1;
}
