/* SPDX-License-Identifier: MIT */
/*
 * Demangles C++ and Rust names and matches them as gdb does: `method` and `Klass::method` match `ns::Klass::method(int)`, every
 * overload and every template instance. Parameters and template arguments that are typed (`foo(int)`, `list<int>::push`) narrow
 * the match; trailing template arguments may be left out (`std::vector<int>`). Spaces do not count. Patterns with a `::` may
 * begin at any component and leave out template arguments, too: `Klass::m*`. The standard library's names match in both
 * spellings, std::string and std::basic_string<char, ...>.
 */
#ifndef DP_PROBES_ELF_DEMANGLE_H
#define DP_PROBES_ELF_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct dp_name_match {
	char *text;     /* as typed, without insignificant spaces */
	char *shorter;  /* the same as dp_demangle_shorten() has it, or NULL */
	char *word;     /* its last identifier, which the mangled name must contain; "" if unsure */
	bool signature; /* parameters were typed */
	bool glob;
	bool anywhere; /* a pattern may begin at any component; set by default if it has a :: */
};

/* Demangles a symbol, with or without parameters, for people (dp_demangle_shorten()); malloc'ed. NULL if it is not mangled. */
char *dp_demangle(const char *symbol, bool parameters);
/* The same with every default argument of the standard library's templates. */
char *dp_demangle_whole(const char *symbol, bool parameters);
/*
 * Shortens the standard library's names: std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > is
 * std::string, std::vector<int, std::allocator<int> > is std::vector<int>. malloc'ed; NULL if it stays as it is.
 */
char *dp_demangle_shorten(const char *text);
/* A text for people in which every mangled name is demangled, with its parameters; malloc'ed. NULL if out of memory. */
char *dp_demangle_text(const char *text);
/* False when out of memory. */
bool dp_name_match_init(struct dp_name_match *match, const char *typed);
void dp_name_match_fini(struct dp_name_match *match);
/* True if the mangled symbol matches. */
bool dp_name_match_symbol(const struct dp_name_match *match, const char *symbol);
/* True if the demangled name matches. */
bool dp_name_match_text(const struct dp_name_match *match, const char *demangled);

#endif
