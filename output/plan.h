/* SPDX-License-Identifier: MIT */
/* What the looking commands show: `dynprobe list` and --dry-run. docs/json.md describes the JSON. */
#ifndef DP_OUTPUT_PLAN_H
#define DP_OUTPUT_PLAN_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- list ------------------------------------------------------------------------------------------------------------------ */

struct dp_listed_site { /* an instruction, and how a probe would stand there */
	uint64_t addr;
	const uint8_t *bytes;
	size_t n;
	const char *text;   /* of the instruction */
	const char *tactic; /* NULL if refused; then */
	const char *tag, *reason;
};

struct dp_listed_function {
	const char *module, *name; /* name "": none is known */
	uint64_t addr, size;       /* size 0: not known */
	uint64_t vaddr;            /* in the file: what names a function without a name */
	bool ifunc;
	const char *const *alias; /* further names */
	size_t naliases;
	const struct dp_listed_site *site; /* NULL: not asked for */
	size_t nsites;
};
/* A line, and one for each site; `reasons`: of refusals, too. */
void dp_function_text(const struct dp_listed_function *f, bool reasons, FILE *to);
void dp_function_json(const struct dp_listed_function *f, FILE *to); /* one line, {"type":"function",...} */

#endif
