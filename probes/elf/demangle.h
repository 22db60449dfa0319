/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ and Rust as people write them. Matching is as in gdb: `method` and `Klass::method` find `ns::Klass::method(int)`,
 * every overload and every instance of a template; what is written out (`foo(int)`, `list<int>::push`) narrows that. Of a
 * template's arguments the last ones may be left out (`std::vector<int>`), and blanks do not count.
 */
#ifndef DP_PROBES_DEMANGLE_H
#define DP_PROBES_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct dp_name_match {
	char *text;     /* without blanks that do not count */
	char *word;     /* its last identifier, which the mangled name holds too; "" if that is not sure */
	bool signature; /* parameters are written out */
	bool glob;
};

/* What a symbol stands for, malloc'ed, with parameters or without; NULL if it is not mangled. */
char *dp_demangle(const char *symbol, bool parameters);
/* False without memory. */
bool dp_name_match_init(struct dp_name_match *match, const char *typed);
void dp_name_match_fini(struct dp_name_match *match);
/* Is that mangled symbol meant? */
bool dp_name_match_symbol(const struct dp_name_match *match, const char *symbol);
/* Is that what a demangled name says? */
bool dp_name_match_text(const struct dp_name_match *match, const char *demangled);

#endif
