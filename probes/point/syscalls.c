/* SPDX-License-Identifier: MIT */
#include "probes/point/syscalls.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>

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

static const struct dp_call_data data[] = {
#define DATA(name, size, most) {#name, size, most},
#include "probes/point/call_data.def"
#undef DATA
};

bool dp_call_word_is(const struct dp_call_word *word, const char *text)
{
	return strlen(text) == word->len && !memcmp(word->text, text, word->len);
}

const struct dp_call_data *dp_call_data(const struct dp_call_arg *arg)
{
	for (size_t i = 0; (arg->in || arg->out) && i < sizeof(data) / sizeof(*data); i++)
		if (dp_call_word_is(&arg->means, data[i].name))
			return &data[i];
	return NULL;
}

bool dp_call_has_buffers(const struct dp_call_arg *arg)
{
	return dp_call_word_is(&arg->means, "iovec") || dp_call_word_is(&arg->means, "readvec");
}

size_t dp_call_data_bytes(const struct dp_call_arg *arg)
{
	const struct dp_call_data *d = dp_call_data(arg);
	if (!d)
		return 0;
	const bool numbered = arg->count.len && arg->count.text[0] >= '0' && arg->count.text[0] <= '9';
	const unsigned n = !arg->count.len ? 1 : numbered ? (unsigned)(arg->count.text[0] - '0') : d->most;
	return (size_t)d->size * (n < d->most ? n : d->most);
}

static struct dp_call_word take_word(const char **at, const char *ends)
{
	const struct dp_call_word word = {*at, strcspn(*at, ends)};
	*at += word.len;
	return word;
}

/* What is after NAME:KIND. */
static void take_meaning(const char **at, struct dp_call_arg *arg)
{
	if (**at == '=') {
		++*at;
		arg->in = **at == '<';
		*at += arg->in;
		arg->out = **at == '>';
		*at += arg->out;
		arg->means = take_word(at, "[? ");
	}
	if (**at == '[') {
		++*at;
		arg->count = take_word(at, "]");
		*at += **at == ']';
	}
	if (**at == '?') {
		++*at;
		arg->only = take_word(at, " ");
	}
}

static bool take_arg(const char **at, struct dp_call_arg *ret)
{
	const size_t len = strcspn(*at, ":");
	if (!(*at)[len])
		return false;
	*ret = (struct dp_call_arg){.name = *at, .len = len, .kind = kind_of((*at)[len + 1])};
	*at += len + 2;
	take_meaning(at, ret);
	*at += **at == ' ';
	ret->rest = *at;
	return true;
}

static bool same_name(const struct dp_call_arg *a, const struct dp_call_arg *b)
{
	return a->len == b->len && !memcmp(a->name, b->name, a->len);
}

static bool is_result(const struct dp_call_arg *arg)
{
	return arg->len == strlen("return") && !memcmp(arg->name, "return", arg->len);
}

int dp_call_args(int32_t nr, struct dp_call_arg ret[DP_CALL_ARGS])
{
	const char *at = nr >= 0 && (size_t)nr < CALLS ? calls[nr].args : NULL;
	struct dp_call_arg one;
	int n = 0;
	if (!at)
		return DP_CALL_ANY;
	while (take_arg(&at, &one) && !is_result(&one))
		if (!n || !same_name(&one, &ret[n - 1]))
			ret[n++] = one;
	return n;
}

bool dp_call_otherwise(const struct dp_call_arg *arg, struct dp_call_arg *ret)
{
	const char *at = arg->rest;
	struct dp_call_arg other;
	if (!take_arg(&at, &other) || !same_name(arg, &other))
		return false;
	*ret = other;
	return true;
}

bool dp_call_result(int32_t nr, struct dp_call_arg *ret)
{
	const char *at = nr >= 0 && (size_t)nr < CALLS ? calls[nr].args : NULL;
	while (at && take_arg(&at, ret))
		if (is_result(ret))
			return true;
	return false;
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
