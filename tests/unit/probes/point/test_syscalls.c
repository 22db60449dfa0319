/* SPDX-License-Identifier: MIT */
#include "probes/point/syscalls.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

Test(syscalls, numbers_are_the_kernels)
{
	cr_expect_str_eq(dp_call_name(SYS_read), "read");
	cr_expect_str_eq(dp_call_name(SYS_openat), "openat");
	cr_expect_str_eq(dp_call_name(SYS_pkey_alloc), "pkey_alloc");
	cr_expect_str_eq(dp_call_name(SYS_io_uring_enter), "io_uring_enter");
	cr_expect_str_eq(dp_call_name(SYS_clone3), "clone3");
	cr_expect_null(dp_call_name(400), "a hole");
	cr_expect_null(dp_call_name(UINT64_MAX));
}

Test(syscalls, names_and_numbers_are_each_others)
{
	char buf[32];
	for (uint64_t nr = 0; nr < DP_CALL_END; nr++)
		cr_expect_eq(dp_call_find(dp_call_format(nr, buf, sizeof(buf))), (int32_t)nr, "%lu", nr);
	cr_expect_eq(dp_call_find("syscall_99999"), DP_CALL_ANY);
	cr_expect_eq(dp_call_find("syscall_"), DP_CALL_ANY);
	cr_expect_eq(dp_call_find("nothing"), DP_CALL_ANY);
}

Test(syscalls, every_argument_has_a_name_and_a_kind)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	unsigned known = 0;
	for (int32_t nr = 0; nr < (int32_t)DP_CALL_END; nr++) {
		const int n = dp_call_args(nr, arg);
		known += n >= 0;
		for (int i = 0; i < n; i++) {
			cr_expect(arg[i].len && arg[i].name[arg[i].len] == ':' && strchr("dluhxps", arg[i].name[arg[i].len + 1]),
			          "%d", nr);
			for (int k = 0; k < i; k++)
				cr_expect(arg[i].len != arg[k].len || memcmp(arg[i].name, arg[k].name, arg[i].len), "%d: twice",
				          nr);
		}
	}
	cr_expect_geq(known, 300);
	cr_assert_eq(dp_call_args(SYS_openat, arg), 4);
	cr_expect(!strncmp(arg[1].name, "filename", arg[1].len) && arg[1].kind == DP_CALL_STRING);
	cr_expect_eq(dp_call_args(SYS_getpid, arg), 0);
}

static void check(const char *text, const char *call, enum dp_point point, const char *module)
{
	struct dp_spec s;
	struct dp_error *err = dp_spec_parse_call(text, &s);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	cr_expect_str_eq(s.call, call);
	cr_expect_eq(s.point, point, "%s", text);
	cr_expect_str_eq(s.module ? s.module : "", module);
	cr_expect(dp_spec_selects(&s));
	dp_spec_fini(&s);
}

Test(syscalls, spellings)
{
	check("read", "read", DP_POINT_PLACE, "");
	check("syscall:read", "read", DP_POINT_PLACE, "");
	check("*", "*", DP_POINT_PLACE, "");
	check("*:exit", "*", DP_POINT_RETURN, "");
	check("libc.so.6!open*:entry", "open*", DP_POINT_ENTRY, "libc.so.6");
	check("read:return", "read", DP_POINT_RETURN, "");
}

Test(syscalls, what_is_no_name_has_a_caret)
{
	static const char *const wrong[] = {"read write", "re+d", "syscall:", "!read", "read:both"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct dp_spec s;
		struct dp_error *err = dp_spec_parse_call(wrong[i], &s);
		cr_assert(err, "accepted: %s", wrong[i]);
		cr_expect_eq(err->tag, DP_TAG_SYNTAX, "%s: %s", wrong[i], err->message);
		cr_expect(strchr(err->message, '^'), "%s", err->message);
		dp_error_destroy(err);
	}
}

Test(syscalls, probe_spells_them_too)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse("syscall:*", &s));
	cr_expect_str_eq(s.call, "*");
	dp_spec_fini(&s);
	cr_assert_null(dp_spec_parse("libc.so.6!syscall", &s));
	cr_expect_null(s.call, "libc's function of that name");
	dp_spec_fini(&s);
}
