/* SPDX-License-Identifier: MIT */
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *text, const char *module, const char *symbol, uint64_t value)
{
	struct dp_spec s;
	struct dp_error *err = dp_spec_parse(text, &s);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	cr_assert_str_eq(s.text, text);
	cr_assert_str_eq(s.module ? s.module : "-", module, "%s", text);
	cr_assert_str_eq(s.symbol ? s.symbol : "-", symbol, "%s", text);
	cr_assert_eq(s.value, value, "%s: 0x%lx", text, s.value);
	dp_spec_fini(&s);
}

/* Refused with a caret under byte `at`. */
static void wrong(const char *text, int at)
{
	struct dp_spec s;
	char caret[64];
	struct dp_error *err = dp_spec_parse(text, &s);
	cr_assert(err, "accepted: %s", text);
	cr_assert_eq(err->tag, DP_TAG_SYNTAX);
	snprintf(caret, sizeof(caret), "\n  %s\n  %*s^", text, at, "");
	size_t n = strlen(err->message), c = strlen(caret);
	cr_assert(n > c && !strcmp(err->message + n - c, caret), "%s", err->message);
	dp_error_destroy(err);
}

static void name(const char *text, const char *expected)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse(text, &s));
	char *got = dp_probe_default_name(&s);
	cr_assert_str_eq(got, expected);
	free(got);
	dp_spec_fini(&s);
}

Test(spec, symbols_addresses_offsets_and_modules)
{
	check("main", "-", "main", 0);
	check("main+0x10", "-", "main", 16);
	check("main+16", "-", "main", 16);
	check("main+020", "-", "main", 16);
	check("main+0", "-", "main", 0);
	check("0x55e0c0de", "-", "-", 0x55e0c0de);
	check("0X55E0C0DE", "-", "-", 0x55e0c0de);
	check("1234", "-", "-", 1234);
	check("0777", "-", "-", 0777);
	check("0", "-", "-", 0);
	check("18446744073709551615", "-", "-", UINT64_MAX);
	check("0xffffffffffffffff", "-", "-", UINT64_MAX);
	check("libc.so.6!puts", "libc.so.6", "puts", 0);
	check("libc*!puts+4", "libc*", "puts", 4);
	check("/opt/my app!b!0x10", "/opt/my app!b", "-", 0x10);
}

Test(spec, unusual_symbols_stay_symbols)
{
	check("_ZN3foo3barEv", "-", "_ZN3foo3barEv", 0);
	check("foo.cold", "-", "foo.cold", 0);
	check("foo.part.0+8", "-", "foo.part.0", 8);
	check("memcpy@GLIBC_2.2.5", "-", "memcpy@GLIBC_2.2.5", 0);
	check("operator+", "-", "operator+", 0);
	check("a+b", "-", "a+b", 0);
	check("a+b+1", "-", "a+b", 1);
}

Test(spec, names_of_go_and_rust_are_symbols)
{
	check("main.main", "-", "main.main", 0);
	check("main.(*Server).Serve", "-", "main.(*Server).Serve", 0);
	check("main.(*Server).Serve-fm+0x10", "-", "main.(*Server).Serve-fm", 16);
	check("main.Map[go.shape.int,go.shape.string]", "-", "main.Map[go.shape.int,go.shape.string]", 0);
	check("github.com/user/pkg.Func.func1", "-", "github.com/user/pkg.Func.func1", 0);
	check("type:.eq.main.T", "-", "type:.eq.main.T", 0);
	check("go:main.inittasks", "-", "go:main.inittasks", 0);
	check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "-", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", 0);
	check("_RNvNtCs1234_7mycrate3foo3bar", "-", "_RNvNtCs1234_7mycrate3foo3bar", 0);
	check("_ZN4core3ptr13drop_in_place$LT$i32$GT$17h0E+4", "-", "_ZN4core3ptr13drop_in_place$LT$i32$GT$17h0E", 4);
}

static void pattern(const char *text, bool is)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse(text, &s), "%s", text);
	cr_expect_eq(dp_spec_has_pattern(&s), is, "%s", text);
	dp_spec_fini(&s);
}

Test(spec, what_was_named_is_told_from_what_a_pattern_finds)
{
	pattern("*", true);
	pattern("SSL_*:return", true);
	pattern("lib*.so!foo", true);
	pattern("foo:*", true);
	pattern("usdt:python:gc*", true);
	pattern("syscall:*", true);
	pattern("foo", false);
	pattern("foo:return", false);
	pattern("foo+0x4", false);
	pattern("a.c:12", false);
	pattern("usdt:python:gc__start", false);
	pattern("syscall:openat", false);
	pattern("method(char*)", false);
	pattern("method(char*):return", false);
}

static void point(const char *text, const char *module, const char *symbol, enum dp_point expected, bool selects)
{
	struct dp_spec s;
	check(text, module, symbol, 0);
	cr_assert_null(dp_spec_parse(text, &s));
	cr_expect_eq(s.point, expected, "%s: point %d", text, s.point);
	cr_expect_eq(dp_spec_selects(&s), selects, "%s", text);
	dp_spec_fini(&s);
}

Test(spec, points_of_functions)
{
	point("foo", "-", "foo", DP_POINT_PLACE, false);
	point("foo:entry", "-", "foo", DP_POINT_ENTRY, false);
	point("foo:return", "-", "foo", DP_POINT_RETURN, true);
	point("foo:*", "-", "foo", DP_POINT_ALL, true);
	point("libc.so.6!foo:return", "libc.so.6", "foo", DP_POINT_RETURN, true);
	point("lib*!foo", "lib*", "foo", DP_POINT_PLACE, true);
	point("SSL_*", "-", "SSL_*", DP_POINT_PLACE, true);
	point("f*:entry", "-", "f*", DP_POINT_ENTRY, true);
	point("*:*", "-", "*", DP_POINT_ALL, true);
	point("f?o[0-9]:return", "-", "f?o[0-9]", DP_POINT_RETURN, true);
	point("memcpy@GLIBC_2.2.5:entry", "-", "memcpy@GLIBC_2.2.5", DP_POINT_ENTRY, false);
	point("type:.eq.main.T:return", "-", "type:.eq.main.T", DP_POINT_RETURN, true);
	point("a::return", "-", "a::return", DP_POINT_PLACE, false);
	point("foo:exit", "-", "foo:exit", DP_POINT_PLACE, false);
}

Test(spec, an_address_has_points_too_and_a_pattern_of_modules_does_not_make_it_many)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse("libc*!0x1234:return", &s));
	cr_expect(!s.symbol && s.value == 0x1234 && s.point == DP_POINT_RETURN);
	dp_spec_fini(&s);
	cr_assert_null(dp_spec_parse("libc*!0x1234", &s));
	cr_expect(!dp_spec_selects(&s));
	dp_spec_fini(&s);
}

Test(spec, the_spelling_of_dtrace)
{
	point("pid$target:libc.so.6:malloc:entry", "libc.so.6", "malloc", DP_POINT_ENTRY, false);
	point("pid$target::malloc:return", "-", "malloc", DP_POINT_RETURN, true);
	point("pid$target:a.out:do_nothing2:", "a.out", "do_nothing2", DP_POINT_ALL, true);
	point("pid$target:a.out:do_nothing2:*", "a.out", "do_nothing2", DP_POINT_ALL, true);
	point("pid$target:lib*:SSL_*:entry", "lib*", "SSL_*", DP_POINT_ENTRY, true);
	point("pid$target:::entry", "-", "*", DP_POINT_ENTRY, true);
	point("pid123::foo:entry", "-", "foo", DP_POINT_ENTRY, false);
	point("pid$target::A::foo:entry", "-", "A::foo", DP_POINT_ENTRY, false);
	check("pid$target::foo:1c", "-", "foo", 0x1c);
	check("pid$target::foo:0x1c", "-", "foo", 0x1c);
	check("pid$target::foo:0", "-", "foo", 0);
	check("pid$target:libc.so.6:-:1c", "libc.so.6", "-", 0x1c);
	point("pid*::malloc:entry", "-", "malloc", DP_POINT_ENTRY, false);
	point("pid*:libssl.so.3:SSL_*:return", "libssl.so.3", "SSL_*", DP_POINT_RETURN, true);
	point("pid*:a.out:main:", "a.out", "main", DP_POINT_ALL, true);
	check("pid", "-", "pid", 0);
	check("pid*", "-", "pid*", 0);
	check("pid*foo", "-", "pid*foo", 0);
	check("pid3", "-", "pid3", 0);
	check("pidfd_open:entry", "-", "pidfd_open", 0);
}

Test(spec, the_pid_of_dtrace_is_kept)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse("pid4242::foo:entry", &s));
	cr_expect_eq(s.pid, 4242);
	dp_spec_fini(&s);
	cr_assert_null(dp_spec_parse("pid$target::foo:entry", &s));
	cr_expect_eq(s.pid, 0);
	dp_spec_fini(&s);
}

Test(spec, pid_star_means_every_process)
{
	const struct {
		const char *text;
		bool every;
	} row[] = {{"pid*::foo:entry", true}, {"pid$target::foo:entry", false}, {"pid4242::foo:entry", false}, {"pid*", false}};
	struct dp_spec s;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		cr_assert_null(dp_spec_parse(row[i].text, &s));
		cr_expect_eq(s.every, row[i].every, "%s", row[i].text);
		cr_expect_eq(s.pid, strstr(row[i].text, "4242") ? 4242 : 0, "%s", row[i].text);
		dp_spec_fini(&s);
	}
	wrong("pid*:foo", 8);
	wrong("pid*:a:b:zz", 9);
}

Test(spec, SYNTAX_errors_of_points_show_the_place)
{
	wrong("foo:", 4);
	wrong("libc!foo:", 9);
	wrong("foo+4:return", 3);
	wrong("foo+4:*", 3);
	wrong(":return", 0);
	wrong("pid$target", 10);
	wrong("pid$target:libc", 15);
	wrong("pid$target:libc:foo", 19);
	wrong("pid1:libc:foo", 13);
	wrong("pid$target::foo:retrun", 16);
	wrong("pid$target::foo:0x", 16);
	wrong("pid$target::foo:12g", 18);
	wrong("pid$target::-:1c", 12);
	wrong("pid$target:libc:-:entry", 16);
	wrong("pid99999999999999999999::foo:entry", 3);
}

Test(spec, offset_is_remembered_even_if_zero)
{
	struct dp_spec s;
	cr_assert_null(dp_spec_parse("foo+0", &s));
	cr_assert(s.has_offset);
	dp_spec_fini(&s);
	cr_assert_null(dp_spec_parse("foo", &s));
	cr_assert(!s.has_offset);
	dp_spec_fini(&s);
}

Test(spec, SYNTAX_error_points_at_the_place)
{
	wrong("", 0);
	wrong("!main", 0);
	wrong("libc!", 5);
	wrong("main+0x", 7);
	wrong("main+0x1g", 8);
	wrong("main+12f", 7);
	wrong("main+089", 6);
	wrong("0x", 2);
	wrong("12ab", 2);
	wrong("+16", 0);
	wrong("lib!+16", 4);
	wrong("0x10+0x20", 4);
	wrong(" main", 0);
	wrong("main ", 4);
	wrong("main+18446744073709551616", 5);
	wrong("0x10000000000000000", 0);
	wrong("02000000000000000000000", 0);
}

Test(spec, caret_counts_characters_not_bytes)
{
	struct dp_spec s;
	struct dp_error *err = dp_spec_parse("f\xc3\xbc+0x1z", &s);
	cr_assert(err && strstr(err->message, "\n        ^"), "%s", err ? err->message : "");
	dp_error_destroy(err);
}

Test(spec, control_characters_are_not_echoed)
{
	struct dp_spec s;
	struct dp_error *err = dp_spec_parse("ma\033[31min", &s);
	cr_assert(err && !strchr(err->message, '\033'));
	dp_error_destroy(err);
}

Test(spec, default_names_are_identifiers)
{
	name("main", "main");
	name("main+0x10", "main_0x10");
	name("main+16", "main_0x10");
	name("0x55e0", "at_0x55e0");
	name("libc.so.6!puts", "puts");
	name("libc.so.6!0x10", "at_0x10");
	name("foo.cold+1", "foo_cold_0x1");
	name("foo:return", "foo_return");
	name("foo:entry", "foo_entry");
	name("main.(*T).Serve", "main___T__Serve");
	name("memcpy@@GLIBC_2.14", "memcpy__GLIBC_2_14");
}

Test(spec, default_name_of_a_long_symbol_is_cut)
{
	char text[2001] = "";
	struct dp_spec s;
	memset(text, 'x', sizeof(text) - 1);
	cr_assert_null(dp_spec_parse(text, &s));
	char *got = dp_probe_default_name(&s);
	cr_assert_leq(strlen(got), 240);
	free(got);
	dp_spec_fini(&s);
}
