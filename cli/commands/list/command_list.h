/* SPDX-License-Identifier: MIT */
/* list -v: the tactic for each instruction, planned as if it had the only probe. */
#ifndef DP_CLI_COMMANDS_LIST_COMMAND_LIST_H
#define DP_CLI_COMMANDS_LIST_COMMAND_LIST_H

#include "session/code/code_view.h"
#include "output/reports/plan.h"
#include "probes/image/function/functions.h"

#define DP_SITE_TEXT 128u

struct dp_verdict { /* storage of one struct dp_listed_site */
	uint8_t bytes[16];
	char text[DP_SITE_TEXT];
	char source[DP_SITE_TEXT]; /* "" if unknown */
	struct dp_error *refused;
};

struct dp_verdicts {
	struct dp_image *image;
	struct dp_code_view *view;
	struct dp_space *space;
	unsigned allowed;    /* tactics */
	bool handler;        /* plan with the agent's fault handler: instructions that raise signals may be moved */
	bool names;          /* calls have readable names */
	uint64_t shown_bias; /* subtracted from shown addresses: the bias of a file that is not loaded */
	/* Of the last function: */
	struct dp_listed_site *site;
	struct dp_verdict *verdict;
	size_t n, capacity;
	/* Of all: */
	size_t tactics[DP_TACTIC_COUNT], refusals[DP_TAG_COUNT], asked;
};

/* `tactics`: bit set of enum dp_tactic, 0 for every jump. */
struct dp_error *dp_verdicts_open(struct dp_image *image, unsigned tactics, uint64_t shown_bias,
                                  struct dp_verdicts *ret) DP_MUST_CHECK;
void dp_verdicts_close(struct dp_verdicts *v);
/* Fills v->site for all instructions of the function; valid until the next call. */
struct dp_error *dp_verdicts_ask(struct dp_verdicts *v, const struct dp_function *f) DP_MUST_CHECK;
/* "1234 instructions: 300 jump, 900 pun, 34 refused (DP-TOO-SHORT 34)" */
void dp_verdicts_total(const struct dp_verdicts *v, FILE *to);

/* command_list_markers.c: is it a glob of markers, usdt:PROVIDER:NAME with patterns, module! before it? */
bool dp_list_is_marker_glob(const char *glob);
/* Prints the matching ones of the module (NULL: all), and adds their number to *n. */
struct dp_error *dp_list_markers(struct dp_module *m, const char *glob, uint64_t shown_bias, bool json, size_t *n) DP_MUST_CHECK;

/* command_list_calls.c: syscall:NAME with patterns, module! before it; places that make any call are among them. */
bool dp_list_is_call_glob(const char *glob);
struct dp_error *dp_list_calls(const struct dp_verdicts *v, const char *glob, bool json, size_t *n) DP_MUST_CHECK;

#endif
