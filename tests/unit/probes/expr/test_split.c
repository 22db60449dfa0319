/* SPDX-License-Identifier: MIT */
/* Which part of a condition on a call is tested at the entry, which at the return. */
#include "probes/expr/syntax/check.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *text, const char *want_entry, const char *want_return)
{
	char *entry, *at_return;
	struct dp_error *err = dp_scope_split(text, &entry, &at_return);
	cr_assert_null(err, "%s", text);
	cr_expect(want_entry ? entry && !strcmp(entry, want_entry) : !entry, "%s: entry %s", text, entry ? entry : "-");
	cr_expect(want_return ? at_return && !strcmp(at_return, want_return) : !at_return, "%s: return %s", text,
	          at_return ? at_return : "-");
	free(entry);
	free(at_return);
}

Test(split, parts_go_where_their_values_are)
{
	check("id == 7", "(id == 7)", NULL);
	check("retval < 0", NULL, "(retval < 0)");
	check("a > 1 && retval && b", "(a > 1 ) && ( b)", "( retval )");
	check("$duration > 5", NULL, "($duration > 5)");
	check("rax == 1 && arg0 == 1", "( arg0 == 1)", "(rax == 1 )");
}

Test(split, what_is_not_joined_by_and_stays_whole)
{
	check("a || retval", NULL, "(a || retval)");
	check("a && b || retval", NULL, "(a && b || retval)");
	check("a && b || c", "(a && b || c)", NULL);
	check("(a && retval) && b", "( b)", "((a && retval) )");
	check("x ? a && b : c", "(x ? a && b : c)", NULL);
}

Test(split, a_member_or_a_text_of_that_name_is_no_result)
{
	check("p->retval == 1", "(p->retval == 1)", NULL);
	check("s.duration", "(s.duration)", NULL);
	check("name == \"retval && x\"", "(name == \"retval && x\")", NULL);
}
