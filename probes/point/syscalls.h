/* SPDX-License-Identifier: MIT */
/* The system calls of x86-64, by number, and what a probe at a `syscall` instruction knows of the one that is made there. */
#ifndef DP_PROBES_SYSCALLS_H
#define DP_PROBES_SYSCALLS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_CALL_ARGS 6u
#define DP_CALL_ANY  -1 /* the number of a place that makes more than one call */

enum dp_call_kind { /* how an argument is shown */
	            DP_CALL_INT,
	            DP_CALL_LONG,
	            DP_CALL_UNSIGNED,
	            DP_CALL_HEX32,
	            DP_CALL_HEX64,
	            DP_CALL_POINTER,
	            DP_CALL_STRING, /* that the program hands over */
};
struct dp_call_arg {
	const char *name; /* `len` characters of it */
	size_t len;
	enum dp_call_kind kind;
};

/* "openat"; NULL if there is none of that number. Numbers are below DP_CALL_END, with holes. */
#define DP_CALL_END 1024u
const char *dp_call_name(uint64_t nr);
/* The same with "syscall_1234" for those without a name, in `buf`. */
const char *dp_call_spell(uint64_t nr, char *buf, size_t size);
/* The number of a name, syscall_N included; DP_CALL_ANY if there is no such call. */
int32_t dp_call_find(const char *name);
/* Its arguments by name, how many; DP_CALL_ANY if they are not known. */
int dp_call_args(int32_t nr, struct dp_call_arg ret[DP_CALL_ARGS]);
/* Does it come back a second time, in a child, with 0? */
bool dp_call_returns_twice(int32_t nr);
/* Does it never come back where it was made? */
bool dp_call_never_returns(int32_t nr);
/* What a probe is about; all zeroes: no system call. */
struct dp_call_at {
	bool is, exit;
	bool chosen;  /* exit: the place makes other calls as well, so only hits whose entry was seen are meant */
	uint8_t back; /* exit: bytes from its place back to where the entry's probe stands */
	int32_t nr;   /* or DP_CALL_ANY */
};

/* What --syscall takes: NAME or a pattern, module! before it, :entry or :exit behind it. */
struct dp_spec;
struct dp_error *dp_spec_parse_call(const char *text, struct dp_spec *ret) DP_MUST_CHECK;

#endif
