/* SPDX-License-Identifier: MIT */
/* The system calls of x86-64 by number, and what a probe at a `syscall` instruction knows about its call. */
#ifndef DP_PROBES_POINT_SYSCALLS_H
#define DP_PROBES_POINT_SYSCALLS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_CALL_ARGS 6u
#define DP_CALL_ANY  -1 /* the number of a place that makes several calls */

enum dp_call_kind { /* how to display an argument */
	            DP_CALL_INT,
	            DP_CALL_LONG,
	            DP_CALL_UNSIGNED,
	            DP_CALL_HEX32,
	            DP_CALL_HEX64,
	            DP_CALL_POINTER,
	            DP_CALL_STRING, /* a string that the program passes in */
};
struct dp_call_word { /* `len` characters of a description, not terminated */
	const char *text;
	size_t len;
};
struct dp_call_arg {
	const char *name; /* `len` characters, not terminated */
	size_t len;
	enum dp_call_kind kind;
	struct dp_call_word means; /* a set of names, or what is in the memory that it points to; len 0: unknown */
	bool in, out;              /* the program passes that memory, the kernel fills it in */
	struct dp_call_word count; /* how many elements: an argument, "ret", or a number */
	struct dp_call_word only;  /* the condition for its existence, or len 0 */
	const char *rest;          /* of the description */
};
struct dp_call_data { /* what arguments point to */
	const char *name;
	unsigned size, most; /* of one element; how many are recorded at most */
};

/* Such as "openat"; NULL if there is no call with that number. Numbers are below DP_CALL_END, with gaps. */
#define DP_CALL_END 1024u
const char *dp_call_name(uint64_t nr);
/* The same, or "syscall_1234" in `buf` for calls without a name. */
const char *dp_call_format(uint64_t nr, char *buf, size_t size);
/* The number for a name, also for syscall_N; DP_CALL_ANY if there is none. */
int32_t dp_call_find(const char *name);
/* Fills in the named arguments and returns how many; DP_CALL_ANY if they are unknown. */
int dp_call_args(int32_t nr, struct dp_call_arg ret[DP_CALL_ARGS]);
/* How to show the result, if it is no decimal number; else false. */
bool dp_call_result(int32_t nr, struct dp_call_arg *ret);
/* The same argument or result as it is where the condition does not hold; false: it does not exist then. */
bool dp_call_otherwise(const struct dp_call_arg *arg, struct dp_call_arg *ret);
/* What is in the memory that the argument points to; NULL: not known. */
const struct dp_call_data *dp_call_data(const struct dp_call_arg *arg);
/* Are these the addresses of several buffers? */
bool dp_call_has_buffers(const struct dp_call_arg *arg);
/* How many bytes of it are recorded; 0: it is not known. */
size_t dp_call_data_bytes(const struct dp_call_arg *arg);
bool dp_call_word_is(const struct dp_call_word *word, const char *text);
/* True if the call returns a second time, with 0 in a child. */
bool dp_call_returns_twice(int32_t nr);
/* True if the call never returns to its caller. */
bool dp_call_never_returns(int32_t nr);
/* -t of a system call: its arguments, result, and the memory that they point to: fields NAME_data, NAME_address of strings,
 * NAME_first of what the first of several buffers has. */
#define DP_CONTEXT_CALL "call"
#define DP_CALL_DATA    "_data"
#define DP_CALL_ADDRESS "_address"
#define DP_CALL_FIRST   "_first"
/* The call that a probe is for; all zeros: no system call. */
struct dp_call_at {
	bool is, exit;
	bool chosen;  /* exit: hits come from other calls, or from none, too, so only those with a matching entry count */
	uint8_t back; /* exit: bytes from its place back to the entry's probe */
	int32_t nr;   /* or DP_CALL_ANY */
};

#endif
