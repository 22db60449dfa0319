/* SPDX-License-Identifier: MIT */
/* Typed values of a real process (shop.cpp): every access, correct and wrong. The attribute conformance.bad counts failed checks.
 */
#include "pmodule.h"

#include <stdlib.h>
#include <string.h>

static int64_t bad, good;
static bt_variable_t *kept; /* from attach to a later callback */

static void check(bool ok, const char *what)
{
	if (ok)
		good++;
	else
		bad++;
	if (!ok)
		pmodule_log(PMODULE_LOG_ERROR, "BAD %s (%s)", what, bt_error());
}
#define CHECK(x) check(x, #x)

static void attach(ptrace_backtrace_t *bt)
{
	bad = good = 0;
	kept = pmodule_bt_query("depot", NULL, NULL);
	CHECK(kept != NULL);
	CHECK(pmodule_bt_query("depot", "shop", "shop.cpp") != NULL);
	CHECK(pmodule_bt_query("depot", "no such file", NULL) == NULL);
	CHECK(pmodule_bt_query("no_such_variable", NULL, NULL) == NULL && strstr(bt_error(), "no variable"));
	CHECK(pmodule_backtrace_pid(bt) > 0);
}

static void steps(void)
{
	uint64_t n = 0, length = 0, address = 0, other = 0;
	int64_t i = 0;
	char text[32];
	bt_variable_t *first = bt_variable_member(kept, "first"), *second = bt_variable_member(first, "next");
	CHECK(bt_variable_ull(bt_variable_member(first, "number"), &n) && n == 11); /* through the pointer */
	CHECK(bt_variable_ll(bt_variable_member(second, "number"), &i) && i == -12);
	CHECK(bt_variable_member(first, "nunber") == NULL && strstr(bt_error(), "nunber") && strstr(bt_error(), "order"));
	CHECK(!bt_variable_ull(bt_variable_member(bt_variable_member(second, "next"), "number"), &n)); /* NULL on the way */
	CHECK(bt_variable_member(bt_variable_member(first, "number"), "x") == NULL);
	CHECK(bt_variable_length(bt_variable_member(kept, "counts"), &length) && length == 3);
	CHECK(bt_variable_ull(bt_variable_index(bt_variable_member(kept, "counts"), 2), &n) && n == 3);
	CHECK(bt_variable_index(bt_variable_member(kept, "counts"), 2000000000000) == NULL ||
	      !bt_variable_ull(bt_variable_index(bt_variable_member(kept, "counts"), 2000000000000), &n));
	CHECK(bt_variable_strncpy(text, bt_variable_member(kept, "name"), sizeof(text)) == 5 && !strcmp(text, "depot"));
	CHECK(bt_variable_strncpy(text, bt_variable_member(kept, "name"), 3) == 2 && !strcmp(text, "de"));
	CHECK(bt_variable_ull(bt_variable_member(kept, "mark"), &n) && n == 0xffff888000000001); /* all 64 bits */
	CHECK(bt_variable_address(kept, &address) && bt_variable_ull(bt_variable_addressof(kept), &other) && address == other);
	CHECK(bt_variable_ull(bt_variable_member(bt_variable_deref_at(kept, address), "mark"), &n) && n == 0xffff888000000001);
	bt_variable_t *around = bt_variable_container_of(bt_variable_member(kept, "counts"), "depot_t", "counts");
	CHECK(bt_variable_address(around, &other) && address == other);
	CHECK(bt_variable_ull(bt_variable_member(pmodule_variable_at("depot_t", address, NULL), "mark"), &n) &&
	      n == 0xffff888000000001);
	CHECK(pmodule_variable_at("no_such_type", address, NULL) == NULL);
	CHECK(bt_variable_ll(
	              bt_variable_index(bt_variable_cast(bt_variable_addressof(bt_variable_member(kept, "counts")), "int *"), 1),
	              &i) &&
	      i == 2);
	CHECK(bt_variable_cast(kept, "no_such_type *") == NULL);
	CHECK(bt_variable_sizeof(kept) > 8);
	CHECK(bt_variable_deref(bt_variable_member(kept, "mark")) == NULL);
}

static bool count(const char *name, bt_variable_t *member, void *data)
{
	*(unsigned *)data += name && member;
	return *(unsigned *)data < 4;
}

static void variables(void)
{
	unsigned members = 0;
	int64_t n = 0;
	uint64_t address = 0;
	CHECK(bt_variable_members(kept, count, &members) && members == 4); /* the walk stopped when told to */
	ptrace_variable_t *v = pmodule_variable_from_bt(bt_variable_member(kept, "mark"));
	CHECK(pmodule_variable_int(v, &n) && (uint64_t)n == 0xffff888000000001);
	CHECK(pmodule_variable_owner(v) == NULL && pmodule_variable_frame(v) == NULL);
	CHECK(bt_variable_address(bt_variable_member(kept, "mark"), &address) && pmodule_variable_address(v) == address);
	CHECK(pmodule_address_symbol(address) == NULL || strstr(pmodule_address_symbol(address), "depot"));
	CHECK(pmodule_symbol_address("depot", NULL, &address) && bt_variable_address(kept, (uint64_t *)&n) &&
	      address == (uint64_t)n);
	CHECK(pmodule_symbol_read_raw("depot", "shop", &address, sizeof(address)) == sizeof(address));
}

static void frame(ptrace_frame_t *f)
{
	int64_t n = 0;
	bt_variable_t *amount = pmodule_frame_query(f, "amount");
	CHECK(bt_variable_ll(bt_variable_member(amount, "second"), &n) && n == 40);
	CHECK(pmodule_frame_query(f, "no_such_local") == NULL);
	ptrace_variable_t *first = pmodule_frame_fprm_at(f, 0);
	CHECK(first && !strcmp(pmodule_variable_name(first), "nobody") && pmodule_variable_fprm_offset(first) == 0);
	CHECK(pmodule_frame_fprm_at(f, 1) == NULL);
	/* A queried variable and an extracted one cannot be added. */
	CHECK(!pmodule_frame_add_variable(f, pmodule_variable_from_bt(amount), false));
	CHECK(!pmodule_frame_add_variable(f, first, false));
	steps();
	variables();
}

static void postattach(ptrace_backtrace_t *bt)
{
	uint64_t n = 0;
	CHECK(bt_variable_ull(bt_variable_member(kept, "mark"), &n) && n == 0xffff888000000001); /* valid to the end */
	pmodule_backtrace_add_kv_int(bt, "conformance.good", good);
	pmodule_log(PMODULE_LOG_WARNING, "%lld good, %lld bad", (long long)good, (long long)bad);
}

static bool load(pmodule_t *m)
{
	pmodule_match_t *match = pmodule_match_create();
	pmodule_match_add_frame_symbol(match, "serve", PMODULE_MATCH_SUBSTR);
	const bool ok = pmodule_attach_event_add(m, attach) && pmodule_frame_event_add(m, match, frame) &&
	                pmodule_postattach_event_add(m, postattach);
	pmodule_match_destroy(match);
	return ok;
}

PMODULE_DEFINE("conformance", load, NULL, NULL);
