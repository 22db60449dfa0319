/* SPDX-License-Identifier: MIT */
/* "Did you mean": which names are offered, in which order, and how they are printed. */
#include "probes/point/suggest.h"

#include <criterion/criterion.h>
#include <string.h>

static void says(const char *typed, const char *const *names, const char *want)
{
	struct dp_suggest s;
	struct dp_buf b = {0};
	dp_suggest_init(&s, typed, strlen(typed));
	for (; *names; names++)
		dp_suggest_offer_part(&s, *names, strlen(*names));
	dp_suggest_print(&s, &b);
	cr_expect_str_eq(dp_buf_str(&b), want, "%s", typed);
	dp_buf_fini(&b);
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(suggest, misspelled_names)
{
	says("handle_reqest", NAMES("handle_request", "main"), "; did you mean handle_request?");
	says("mian", NAMES("main", "min"), "; did you mean main or min?");
	says("qqqqqq", NAMES("main", "handle_request"), "");
}

Test(suggest, a_part_of_a_name_between_underscores)
{
	says("process_request", NAMES("ngx_http_process_request", "process_requests"),
	     "; did you mean process_requests or ngx_http_process_request?");
	says("proces_request", NAMES("ngx_process_request"), "; did you mean ngx_process_request?");
	says("request", NAMES("my_request", "myrequesting"), "; did you mean my_request?");
	says("get", NAMES("my_get"), "");
}

Test(suggest, parts_that_a_compiler_made)
{
	says("work", NAMES("work.part.0"), "; did you mean work.part.0?");
}

Test(suggest, a_name_says_which_module_has_it)
{
	struct dp_suggest s;
	struct dp_buf b = {0};
	dp_suggest_init(&s, "fre", 3);
	s.within = "libc.so.6";
	dp_suggest_offer(&s, "free", 4);
	s.within = NULL;
	dp_suggest_offer(&s, "fred", 4);
	dp_suggest_offer(&s, "free", 4);
	dp_suggest_print(&s, &b);
	cr_expect_str_eq(dp_buf_str(&b), "; did you mean libc.so.6!free or fred?");
	dp_buf_fini(&b);
}
