/* SPDX-License-Identifier: MIT */
#include "probes/point/syscalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call {
	const char *name, *args;
};

static const struct call calls[] = {
#define CALL(number, name, args) [number] = {#name, args},
#include "probes/point/syscalls.def"
#undef CALL
};
#define CALLS (sizeof(calls) / sizeof(*calls))

const char *dp_call_name(uint64_t nr)
{
	return nr < CALLS ? calls[nr].name : NULL;
}

const char *dp_call_format(uint64_t nr, char *buf, size_t size)
{
	const char *name = dp_call_name(nr);
	if (name)
		return name;
	snprintf(buf, size, "syscall_%llu", (unsigned long long)nr);
	return buf;
}

int32_t dp_call_find(const char *name)
{
	static const char numbered[] = "syscall_";
	const size_t n = sizeof(numbered) - 1;
	char *end;
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].name && !strcmp(calls[i].name, name))
			return (int32_t)i;
	if (strncmp(name, numbered, n) != 0 || name[n] < '0' || name[n] > '9')
		return DP_CALL_ANY;
	const unsigned long nr = strtoul(name + n, &end, 10);
	return *end || nr >= DP_CALL_END ? DP_CALL_ANY : (int32_t)nr;
}

static enum dp_call_kind kind_of(char letter)
{
	static const char letters[] = "dluhxps"; /* in the order of the enum */
	const char *at = strchr(letters, letter);
	return at ? (enum dp_call_kind)(at - letters) : DP_CALL_HEX64;
}

int dp_call_args(int32_t nr, struct dp_call_arg ret[DP_CALL_ARGS])
{
	const char *at = nr >= 0 && (size_t)nr < CALLS ? calls[nr].args : NULL;
	int n = 0;
	if (!at)
		return DP_CALL_ANY;
	for (; *at && n < (int)DP_CALL_ARGS; n++) {
		const size_t len = strcspn(at, ":");
		if (!at[len])
			break;
		ret[n] = (struct dp_call_arg){.name = at, .len = len, .kind = kind_of(at[len + 1])};
		at += len + 2;
		at += *at == ' ';
	}
	return n;
}

bool dp_call_returns_twice(int32_t nr)
{
	enum { CLONE = 56, FORK = 57, VFORK = 58, CLONE3 = 435 };
	return nr == CLONE || nr == FORK || nr == VFORK || nr == CLONE3;
}

bool dp_call_never_returns(int32_t nr)
{
	enum { RT_SIGRETURN = 15, EXIT = 60, EXIT_GROUP = 231 };
	return nr == RT_SIGRETURN || nr == EXIT || nr == EXIT_GROUP;
}
