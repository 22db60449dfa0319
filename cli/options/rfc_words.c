/* SPDX-License-Identifier: MIT */
#include "cli/options/rfc_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct words { /* to become argv */
	char **at;
	int n;
};

static void put(struct words *w, const char *word)
{
	w->at[w->n++] = (char *)(uintptr_t)word;
}

static bool is_user_space(const char *word)
{
	return !strcmp(word, "-u") || !strcmp(word, "--userspace");
}

static void put_rest(struct words *w, char *const *rest)
{
	for (; *rest; rest++)
		if (!is_user_space(*rest))
			put(w, *rest);
}

static bool is_option(const char *word, const char *option)
{
	const size_t n = strlen(option);
	return !strncmp(word, option, n) && (!word[n] || word[n] == '=');
}

static bool names_a_place(char *const *words)
{
	static const char *const options[] = {"--probe", "--function", "--return", "--usdt", "--syscall"};
	for (; *words; words++)
		for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
			if (is_option(*words, options[i]))
				return true;
	return false;
}

/* Chooses LTTng's session as lttng does: by -s, otherwise the current one. */
static void put_attach(struct words *w, char *const *rest)
{
	bool chosen = false;
	for (char *const *word = rest; *word; word++)
		chosen = chosen || is_option(*word, "--sink") || is_option(*word, "--session") || !strcmp(*word, "-s");
	if (!chosen) {
		put(w, "--sink");
		put(w, "current");
	}
	for (; *rest; rest++)
		if (!is_user_space(*rest))
			put(w, strcmp(*rest, "-s") ? *rest : "--session");
}

/* The event's name follows the verb, or -u. */
static struct dp_error *take_name(const char *verb, char ***rest, const char **ret)
{
	while (**rest && is_user_space(**rest))
		++*rest;
	if (!**rest || ***rest == '-')
		return dp_error(DP_TAG_USAGE, "which event? dynprobe %s NAME -u --pid PID%s", verb,
		                strcmp(verb, "enable-event") ? "" : " --probe SPEC");
	*ret = *(*rest)++;
	return NULL;
}

static struct dp_error *enable_event(struct words *w, char **rest)
{
	const char *name;
	DP_TRY(take_name("enable-event", &rest, &name));
	const bool is_new = names_a_place(rest);
	put(w, is_new ? "attach" : "enable");
	if (is_new)
		put(w, "--name");
	put(w, name);
	if (is_new)
		put_attach(w, rest);
	else
		put_rest(w, rest);
	return NULL;
}

static struct dp_error *disable_event(struct words *w, char **rest)
{
	const char *name;
	DP_TRY(take_name("disable-event", &rest, &name));
	put(w, "disable");
	put(w, name);
	put_rest(w, rest);
	return NULL;
}

static struct dp_error *add_context(struct words *w, char **rest)
{
	put(w, "add-context");
	put_rest(w, rest);
	return NULL;
}

static struct dp_error *trace(struct words *w, char **rest)
{
	for (; *rest; rest++)
		put(w, *rest);
	return NULL;
}

/* lttng list -u: the events of processes. */
static struct dp_error *list(struct words *w, char **rest)
{
	bool is_status = false;
	for (char **word = rest; *word; word++)
		is_status = is_status || is_user_space(*word);
	put(w, is_status ? "status" : "list");
	if (is_status)
		put_rest(w, rest);
	else
		trace(w, rest);
	return NULL;
}

static const struct {
	const char *word;
	struct dp_error *(*say)(struct words *w, char **rest);
} known[] = {{"enable-event", enable_event},
             {"disable-event", disable_event},
             {"add-context", add_context},
             {"trace", trace},
             {"list", list}};

struct dp_error *dp_rfc_words(int *argc, char ***argv, char ***owned)
{
	struct words w = {NULL, 0};
	*owned = NULL;
	for (size_t i = 0; *argc > 1 && i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp((*argv)[1], known[i].word) != 0)
			continue;
		*owned = w.at = calloc((size_t)*argc + 5, sizeof(*w.at));
		if (!w.at)
			return dp_error_nomem();
		put(&w, (*argv)[0]);
		DP_TRY(known[i].say(&w, *argv + 2));
		*argc = w.n;
		*argv = w.at;
		return NULL;
	}
	return NULL;
}
