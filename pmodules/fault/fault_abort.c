/* SPDX-License-Identifier: MIT */
/*
 * Explains why a program aborted: from the functions on its stack, and from glibc's last message (__abort_msg, meant for
 * debuggers).
 */
#include "pmodules/fault/fault.h"

#include <ctype.h>
#include <string.h>
#include <utlist.h>

enum { MESSAGE_MAX = 512 };

static bool is_called(const struct dp_snap_thread *t, const char *name)
{
	const struct dp_snap_frame *f;
	DL_FOREACH(t->frames, f)
	if ((f->linkage && !strcmp(f->linkage, name)) || (f->symbol && !strcmp(f->symbol, name)))
		return true;
	return false;
}

/* struct abort_msg_s { unsigned size; char msg[]; } *__abort_msg; size is that of its mapping. */
static bool message_of(struct dp_debug_ctx *w, char *text, size_t size)
{
	uint64_t at, block = 0;
	uint32_t length = 0;
	if (!dp_debug_ctx_symbol(w, "__abort_msg", NULL, &at) || !dp_debug_ctx_get(w, at, &block, sizeof(block), NULL) ||
	    !block || !dp_debug_ctx_get(w, block, &length, sizeof(length), NULL) || !length)
		return false;
	size_t n = dp_debug_ctx_read(w, block + sizeof(length), text, length < size - 1 ? length : size - 1, NULL);
	text[n] = 0;
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	return n;
}

static void classify(struct dp_snapshot *s, const struct dp_snap_thread *t, const char *message)
{
	static const struct {
		const char *text, *classifier;
	} by_message[] = {{"Assertion `", "assert"},
	                  {"buffer overflow detected", "fortify"},
	                  {"stack smashing detected", "stack-smash"},
	                  {"double free", "double-free"},
	                  {"invalid pointer", "invalid-free"},
	                  {"malloc", "heap-corrupt"},
	                  {"free()", "heap-corrupt"},
	                  {"corrupted", "heap-corrupt"}};
	static const struct {
		const char *name, *classifier;
	} by_function[] = {{"__assert_fail", "assert"},
	                   {"__fortify_fail", "fortify"},
	                   {"__chk_fail", "fortify"},
	                   {"__stack_chk_fail", "stack-smash"}};
	dp_snapshot_classify(s, "abort");
	for (size_t i = 0; i < sizeof(by_function) / sizeof(*by_function); i++)
		/* glibc reports a smashed stack through __fortify_fail, too. */
		if (is_called(t, by_function[i].name) &&
		    !(!strcmp(by_function[i].classifier, "fortify") && strstr(message, "stack smashing")))
			dp_snapshot_classify(s, by_function[i].classifier);
	for (size_t i = 0; i < sizeof(by_message) / sizeof(*by_message); i++)
		if (strstr(message, by_message[i].text))
			dp_snapshot_classify(s, by_message[i].classifier);
}

void dp_fault_abort(struct dp_debug_ctx *w, struct dp_snap_thread *t)
{
	char message[MESSAGE_MAX] = "";
	struct dp_snapshot *s = t->snapshot;
	const bool any = message_of(w, message, sizeof(message));
	classify(s, t, message);
	if (!any && is_called(t, "_ZSt9terminatev") && is_called(t, "__cxa_throw")) {
		dp_snapshot_classify(s, "exception");
		t->fault_reason = "the program aborted: uncaught C++ exception";
		return;
	}
	t->fault_reason = dp_arena_printf(&s->arena, any ? "the program aborted: %s" : "the program aborted%s", message);
}
