/* SPDX-License-Identifier: MIT */
/* The command line of dynprobe, parsed. The option table in options.c also feeds --help and the shell completion. */
#ifndef DP_CLI_OPTIONS_H
#define DP_CLI_OPTIONS_H

#include "base/cleanup.h"
#include "base/error.h"
#include "probes/probes.h"

#include <sys/types.h>

enum dp_format { DP_FORMAT_TEXT, DP_FORMAT_JSON, DP_FORMAT_CTF };

/* Exit statuses, as timeout(1) and env(1) have them. A launched command's own status passes through. */
enum {
	DP_EXIT_PARTIAL = 124, /* some probes were refused, the others ran */
	DP_EXIT_FAILURE = 125, /* dynprobe itself failed; nothing was probed */
	DP_EXIT_CANNOT_RUN = 126,
	DP_EXIT_NOT_FOUND = 127,
};

struct dp_options {
	pid_t *pid;
	size_t npids;
	char **command; /* NULL-terminated, or NULL */
	struct dp_probe *probe;
	size_t nprobes;
	uint64_t hits;        /* -n; 0: no limit */
	uint64_t duration_ns; /* -d; 0: no limit */
	const char *output;   /* -o; NULL: standard error; "-": standard output */
	const char *record;   /* --record; NULL: the default place */
	const char *color;    /* auto, always, never */
	enum dp_format format;
	size_t ring_size; /* --buffer-size; 0: default */
	bool no_record, quiet, dry_run, allow_seccomp, help, version;
	int verbose;
};

/* On failure everything is freed. The error's text ends with a caret line where a part of an argument is at fault. */
struct dp_error *dp_options_parse(int argc, char **argv, struct dp_options *ret) DP_MUST_CHECK;
void dp_options_fini(struct dp_options *options);

void dp_options_help(FILE *to);
/* A bash completion script made from the option table. */
void dp_options_completion(FILE *to);

/* Splits a command line into words as a shell does: blanks, 'single' and "double" quotes, backslash; no expansions. */
struct dp_error *dp_words_split(const char *line, char ***ret) DP_MUST_CHECK;
void dp_words_free(char **words);

#endif
