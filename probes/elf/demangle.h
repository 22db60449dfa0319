/* SPDX-License-Identifier: MIT */
/*
 * Demangles C++ and Rust names and matches them as gdb does: `method` and `Klass::method` match `ns::Klass::method(int)`, every
 * overload and every template instance. Parameters and template arguments that are typed (`foo(int)`, `list<int>::push`) narrow
 * the match; trailing template arguments may be left out (`std::vector<int>`). Spaces do not count.
 */
#ifndef DP_PROBES_ELF_DEMANGLE_H
#define DP_PROBES_ELF_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct dp_name_match {
	char *text;     /* as typed, without insignificant spaces */
	char *word;     /* its last identifier, which the mangled name must contain; "" if unsure */
	bool signature; /* parameters were typed */
	bool glob;
};

/* Demangles a symbol, with or without parameters; malloc'ed. NULL if it is not mangled. */
char *dp_demangle(const char *symbol, bool parameters);
/* False when out of memory. */
bool dp_name_match_init(struct dp_name_match *match, const char *typed);
void dp_name_match_fini(struct dp_name_match *match);
/* True if the mangled symbol matches. */
bool dp_name_match_symbol(const struct dp_name_match *match, const char *symbol);
/* True if the demangled name matches. */
bool dp_name_match_text(const struct dp_name_match *match, const char *demangled);

#endif
