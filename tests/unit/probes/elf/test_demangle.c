/* SPDX-License-Identifier: MIT */
/* C++ and Rust names are shown as in the source. */
#include "base/buf.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static bool names(const char *typed, const char *symbol)
{
	struct dp_name_match match;
	cr_assert(dp_name_match_init(&match, typed));
	const bool yes = dp_name_match_symbol(&match, symbol);
	dp_name_match_fini(&match);
	return yes;
}

#define METHOD       "_ZN2ns5Klass6methodEiPc"                /* ns::Klass::method(int, char*) */
#define CONST_METHOD "_ZNK2ns5Klass6methodEv"                 /* ns::Klass::method() const */
#define PUSH         "_ZNSt6vectorIiSaIiEE9push_backERKi"     /* std::vector<int, std::allocator<int> >::push_back(int const&) */
#define TEMPLATE     "_ZN2ns5twiceIiEET_S1_"                  /* int ns::twice<int>(int) */
#define RUST_LEGACY  "_ZN4core3fmt5write17h0123456789abcdefE" /* core::fmt::write */
#define RUST_V0      "_RNvCs1234_7mycrate3foo"                /* mycrate::foo */
#define SHIFT        "_ZN2nslsERSoRKNS_5KlassE"               /* ns::operator<<(std::ostream&, ns::Klass const&) */
#define CALL         "_ZN2ns5KlassclEi"                       /* ns::Klass::operator()(int) */
#define NAMELESS     "_ZN12_GLOBAL__N_16hiddenEi"             /* (anonymous namespace)::hidden(int) */
#define CLONE        "_ZN2ns5plainEi.isra.0"

Test(demangle, names_are_matched_from_any_component)
{
	cr_assert(names("ns::Klass::method", METHOD));
	cr_assert(names("Klass::method", METHOD));
	cr_assert(names("method", METHOD));
	cr_assert_not(names("lass::method", METHOD));
	cr_assert_not(names("ns::Klass", METHOD));
	cr_assert_not(names("ethod", METHOD));
	cr_assert_not(names("ns::method", METHOD));
	cr_assert(names("hidden", NAMELESS));
	cr_assert(names("(anonymous namespace)::hidden(int)", NAMELESS));
	cr_assert(names("ns::plain", CLONE));
}

Test(demangle, a_signature_chooses_among_overloads)
{
	cr_assert(names("ns::Klass::method(int, char*)", METHOD));
	cr_assert(names("method(int,char *)", METHOD));
	cr_assert(names("vector<int>::push_back(const int&)", PUSH));
	cr_assert_not(names("method(int)", METHOD));
	cr_assert_not(names("method()", METHOD));
	cr_assert(names("method()", CONST_METHOD));
	cr_assert(names("method() const", CONST_METHOD));
	cr_assert_not(names("method() volatile", CONST_METHOD));
}

Test(demangle, template_arguments_may_be_left_out)
{
	cr_assert(names("std::vector<int>::push_back", PUSH));
	cr_assert(names("std::vector<int, std::allocator<int>>::push_back", PUSH));
	cr_assert(names("std::vector::push_back", PUSH));
	cr_assert(names("vector<int>::push_back(int const&)", PUSH));
	cr_assert_not(names("std::vector<long>::push_back", PUSH));
	cr_assert(names("ns::twice", TEMPLATE));
	cr_assert(names("ns::twice<int>", TEMPLATE));
	cr_assert(names("twice<int>(int)", TEMPLATE));
	cr_assert_not(names("twice<char>", TEMPLATE));
}

Test(demangle, constructors_of_what_mangled_names_abbreviate)
{
	cr_assert(names("std::allocator<wchar_t>::allocator(std::allocator<wchar_t> const&)", "_ZNSaIwEC1ERKS_"));
	cr_assert(names("basic_ostream", "_ZNSoC1ERSd"));
	cr_assert_not(names("std::allocator<char>::allocator", "_ZNSaIwEC1ERKS_"));
}

Test(demangle, operators_are_names)
{
	cr_assert(names("ns::operator<<", SHIFT));
	cr_assert_not(names("ns::operator<", SHIFT));
	cr_assert(names("Klass::operator()", CALL));
	cr_assert(names("Klass::operator()(int)", CALL));
	cr_assert_not(names("Klass::operator()(long)", CALL));
}

Test(demangle, rust_has_two_manglings)
{
	cr_assert(names("core::fmt::write", RUST_LEGACY));
	cr_assert(names("fmt::write", RUST_LEGACY));
	cr_assert(names("mycrate::foo", RUST_V0));
	cr_assert_not(names("mycrate::fo", RUST_V0));
}

Test(demangle, patterns_are_those_of_whole_names)
{
	cr_assert(names("ns::Klass::*", METHOD));
	cr_assert(names("ns::*", CONST_METHOD));
	cr_assert(names("*::push_?ack", PUSH));
	cr_assert(names("ns::Klass::method(int, *)", METHOD));
	cr_assert_not(names("K*", METHOD));
	cr_assert_not(names("meth*", METHOD));
}

Test(demangle, patterns_with_a_scope_begin_at_any_component)
{
	cr_assert(names("Klass::*", METHOD));
	cr_assert(names("Klass::m*", METHOD));
	cr_assert(names("*::m*", METHOD));
	cr_assert_not(names("lass::*", METHOD));
	cr_assert_not(names("Klass::x*", METHOD));
	cr_assert(names("vector::push*", PUSH));
	cr_assert(names("std::vector<int>::push*", PUSH));
	cr_assert_not(names("vector<long>::push*", PUSH));
	cr_assert(names("Klass::*", CALL));
}

#define STRING     "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc"
#define STRING_ARG "_Z5greetRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define MAP_ARG                                                                                                                  \
	"_Z4findRSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt6vectorIiSaIiEESt4lessIS5_ESaISt4pairIKS5_S8_EEE"

static void reads(const char *symbol, const char *text)
{
	char *readable = dp_demangle(symbol, true);
	cr_assert_str_eq(readable, text);
	free(readable);
}

static void shortens(const char *text, const char *to)
{
	char *shorter = dp_demangle_shorten(text);
	if (to)
		cr_assert_str_eq(shorter, to);
	else
		cr_assert_null(shorter, "%s", text);
	free(shorter);
}

Test(demangle, the_standard_librarys_names_are_short)
{
	reads(STRING, "std::string::append(char const*)");
	reads(STRING_ARG, "greet(std::string const&)");
	reads(MAP_ARG, "find(std::map<std::string, std::vector<int> >&)");
	shortens("std::basic_ostream<char, std::char_traits<char> >& f()", "std::ostream& f()");
	shortens("f(std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >)",
	         "f(std::wstring)");
	shortens("std::unordered_map<int, A<long>, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<int const, "
	         "A<long> > > >",
	         "std::unordered_map<int, A<long> >");
	shortens("Box<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >::get",
	         "Box<std::string>::get");
	shortens("std::unique_ptr<Foo, std::default_delete<Foo> >", "std::unique_ptr<Foo>");
}

Test(demangle, what_is_not_the_default_stays)
{
	shortens("std::vector<int, mine::allocator<int> >::size", NULL);
	shortens("std::vector<int, std::allocator<long> >::size", NULL);
	shortens("std::map<int, std::less<int> >", NULL);
	shortens("std::set<int, std::greater<int>, std::allocator<int> >", "std::set<int, std::greater<int> >");
	shortens("mystd::vector<int, std::allocator<int> >", NULL);
	shortens("mine::std::vector<int, std::allocator<int> >", NULL);
	shortens("std::pair<int, std::less<int> >", NULL);
	shortens("std::vector<int, std::allocator<int>", NULL);
	shortens("std::vector<", NULL);
	shortens("std::", NULL);
}

Test(demangle, the_standard_librarys_names_match_in_both_spellings)
{
	cr_assert(names("std::string::append", STRING));
	cr_assert(names("string::append", STRING));
	cr_assert(names("std::string::*", STRING));
	cr_assert(names("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append", STRING));
	cr_assert(names("std::basic_string<char, std::char_traits<char>, std::allocator<char>>::app*", STRING));
	cr_assert(names("basic_string::append", STRING));
	cr_assert_not(names("std::wstring::append", STRING));
	cr_assert(names("greet(std::string const&)", STRING_ARG));
	cr_assert(names("greet(const std::string &)", STRING_ARG));
	cr_assert_not(names("greet(std::string)", STRING_ARG));
	cr_assert(names("find(std::map<std::string, std::vector<int>>&)", MAP_ARG));
}

Test(demangle, messages_are_readable)
{
	char *text = dp_demangle_text(
	        "refused a!_ZN2ns5Klass6methodEiPc+0x4, because _Z and __ZN1a1bEv stay. See _ZN2ns5Klass6methodEiPc.");
	cr_assert_str_eq(text, "refused a!ns::Klass::method(int, char*)+0x4, because _Z and __ZN1a1bEv stay. See "
	                       "ns::Klass::method(int, char*).");
	free(text);
}

Test(demangle, what_is_not_mangled_is_no_name_of_these_languages)
{
	static const char *const plain[] = {"main",      "",    "_",    "_Z",        "_R",
	                                    "_Zfoo bar", "_ZN", "_RNv", "main.main", "fmt.(*pp).printArg"};
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		cr_assert_null(dp_demangle(plain[i], true), "%s", plain[i]);
		cr_assert_not(names("main", plain[i]));
	}
	char *deep = malloc(20001);
	for (int i = 0; i < 20000; i++)
		deep[i] = "_ZP"[i < 2 ? i : 2];
	deep[20000] = 0;
	cr_assert_null(dp_demangle(deep, true));
	free(deep);
}

/* The substitution number `n`: S_, S0_, ... S9_, SA_. */
static void put_number(struct dp_buf *b, unsigned n)
{
	if (n)
		dp_buf_printf(b, "S%c_", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n - 1]);
	else
		dp_buf_printf(b, "S_");
}

/* void f<a<int>, a<a<int>, a<int> >, ...>(), where each argument has the one before it twice. */
static void put_doubling(struct dp_buf *b, unsigned times)
{
	dp_buf_printf(b, "_Z1fI1aIiE");
	for (unsigned i = 2; i < 2 + times; i++) {
		dp_buf_printf(b, "S0_I");
		put_number(b, i);
		put_number(b, i);
		dp_buf_printf(b, "E");
	}
	dp_buf_printf(b, "Evv");
}

Test(demangle, a_short_name_that_stands_for_terabytes_is_left_as_it_is, .timeout = 60)
{
	struct dp_buf small = {0}, huge = {0};
	put_doubling(&small, 2);
	put_doubling(&huge, 33);
	char *text = dp_demangle(dp_buf_str(&small), false);
	cr_assert_str_eq(text, "f<a<int>, a<a<int>, a<int> >, a<a<a<int>, a<int> >, a<a<int>, a<int> > > >");
	cr_assert_null(dp_demangle(dp_buf_str(&huge), false));
	cr_assert_null(dp_demangle(dp_buf_str(&huge), true));
	free(text);
	dp_buf_fini(&small);
	dp_buf_fini(&huge);
}

static const char *readable(struct dp_module *m, const char *symbol)
{
	return dp_function_readable(&(struct dp_function){.name = symbol, .module = m});
}

Test(demangle, names_for_people_are_without_parameters_and_kept)
{
	static char symbol[1000][16];
	struct dp_parsed parsed = {0};
	struct dp_module m = {.parsed = &parsed};
	char expected[16];
	const char *first = readable(&m, METHOD);
	cr_assert_str_eq(first, "ns::Klass::method");
	cr_assert_str_eq(readable(&m, CLONE), "ns::plain [clone .isra.0]");
	cr_assert_str_eq(readable(&m, RUST_LEGACY), "core::fmt::write");
	cr_assert_str_eq(readable(&m, RUST_V0), "mycrate::foo");
	cr_assert_str_eq(readable(&m, "_ZN53_$LT$mycrate..Thing$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE"),
	                 "<mycrate::Thing as core::fmt::Display>::fmt");
	cr_assert_str_eq(readable(&m, RUST_LEGACY ".llvm.1234"), "core::fmt::write");
	cr_assert_str_eq(readable(&m, METHOD ".cold"), "ns::Klass::method [clone .cold]");
	cr_assert_str_eq(readable(&m, "_ZN2ns3RunIPFvPKcEE2goEv"), "ns::Run<void (*)(char const*)>::go");
	cr_assert_str_eq(readable(&m, "main"), "main");
	cr_assert_str_eq(readable(&m, "_Zfoo bar"), "_Zfoo bar");
	for (int i = 0; i < 1000; i++)
		snprintf(symbol[i], sizeof(symbol[i]), "_Z4f%03dv", i);
	for (int i = 0; i < 2000; i++) {
		snprintf(expected, sizeof(expected), "f%03d", i % 1000);
		cr_assert_str_eq(readable(&m, symbol[i % 1000]), expected);
	}
	cr_assert_eq(readable(&m, METHOD), first);
	dp_readables_fini(&parsed.readables);
}
