/* SPDX-License-Identifier: MIT */
/* Output of the commands that only inspect: `dynprobe list` and --dry-run. docs/json.md describes the JSON. */
#ifndef DP_OUTPUT_REPORTS_PLAN_H
#define DP_OUTPUT_REPORTS_PLAN_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- list ------------------------------------------------------------------------------------------------------------------ */

struct dp_listed_site { /* an instruction, and how it would be probed */
	uint64_t addr;
	const uint8_t *bytes;
	size_t n;
	const char *text;   /* of the instruction */
	const char *tactic; /* NULL if refused; then tag and reason are set */
	const char *tag, *reason;
	const char *source; /* "server.c:120", or NULL */
};

struct dp_listed_marker { /* a USDT marker */
	const char *path, *module, *provider, *name;
	const char *args;     /* its operands */
	uint64_t addr, vaddr; /* vaddr: address in the file */
	uint64_t semaphore;   /* 0: none */
};
/* One line: address, usdt:PROVIDER:NAME with its module, operands. */
void dp_marker_text(const struct dp_listed_marker *m, FILE *to);
void dp_marker_json(const struct dp_listed_marker *m, FILE *to); /* one line, {"type":"marker",...} */

struct dp_listed_function {
	const char *path;          /* of the module's file */
	const char *module, *name; /* name "": unknown */
	const char *file;          /* of several functions with the name: what FUNCTION@FILE needs; or NULL */
	int line;                  /* of that file; 0: unknown */
	uint64_t addr, size;       /* size 0: unknown */
	uint64_t vaddr;            /* address in the file: identifies a function without a name */
	bool ifunc;
	const char *const *alias; /* other names */
	size_t naliases;
	const struct dp_listed_site *site; /* NULL: not requested */
	size_t nsites;
};
/* One line, and one for each site; `reasons`: also show why sites are refused. */
void dp_function_text(const struct dp_listed_function *f, bool reasons, FILE *to);
void dp_function_json(const struct dp_listed_function *f, FILE *to); /* one line, {"type":"function",...} */

/* ---- --dry-run ------------------------------------------------------------------------------------------------------------- */

struct dp_planned_bytes { /* one patch: [0, changed) changes, [changed, len) must stay as it is */
	uint64_t addr;
	const char *where; /* "foo+0x4/0x21 [server]" */
	const uint8_t *before, *after;
	size_t len, changed;
	uint64_t stub, springboard; /* springboard 0: the jump leads to the stub directly */
	size_t stub_size;
};

struct dp_planned_site {
	pid_t pid;
	const char *name, *spec;
	struct dp_planned_bytes patch; /* if refused, only addr and where */
	const char *tactic;            /* NULL if refused; then tag and reason are set */
	const char *tag, *reason;
	unsigned displaced;                     /* bytes of instructions that run in the stub */
	const struct dp_planned_bytes *evicted; /* evicted neighbours */
	size_t nevicted;
};

struct dp_plan_count {
	const char *word; /* a tactic or a tag */
	size_t n;
};

struct dp_plan_total { /* of one process */
	pid_t pid;
	const char *comm;
	size_t asked, placed;
	size_t evicted, hooks;                        /* hooks: our own patches, on system calls */
	const struct dp_plan_count *tactic, *refusal; /* those that occur; terminated by a NULL word */
	size_t text_pages;                            /* pages of the program's text that become private copies */
	size_t stub_mappings;
	uint64_t stub_bytes; /* of stubs and springboards, in whole pages */
	unsigned own_mappings;
	uint64_t own_bytes;  /* agent and its data */
	uint64_t ring_bytes; /* address space; memory is taken as threads record */
	uint64_t install_ns, removal_ns; /* estimates */
	uint64_t pause_ns, together_ns;  /* longest hold of one thread, and of all threads together */
	uint64_t ring_memory; /* limit for the memory of all rings */
	const char *note;    /* what the figures leave out, or NULL */
};

void dp_plan_text(const struct dp_planned_site *site, FILE *to);
void dp_plan_json(const struct dp_planned_site *site, FILE *to); /* one line, {"type":"plan",...} */
void dp_plan_total_text(const struct dp_plan_total *t, FILE *to);
void dp_plan_total_json(const struct dp_plan_total *t, FILE *to); /* one line, {"type":"plan_total",...} */

#endif
