/* SPDX-License-Identifier: MIT */
/* A probe: one site with its name, capture and condition. */
#ifndef DP_PROBES_POINT_PROBE_H
#define DP_PROBES_POINT_PROBE_H

#include "probes/point/spec.h"
#include "probes/record/expr.h"
#include "probes/record/fields.h"

struct dp_probe {
	char *name; /* [A-Za-z_][A-Za-z0-9_]*; by default derived from the spec; unique in the run */
	char *title; /* display name instead of `name`, shared by probes that are one to the user; or NULL */
	char *shown, *shown_more; /* the name as people read it (`more`: with parameters, while probes are expanded), or NULL */
	bool entry; /* --function: the function's entry (the site is after an endbr64) */
	bool leaves; /* a return: the function ends at this place */
	bool bound;  /* `fields` were made for one site (scope.h) */
	struct dp_spec spec;
	struct dp_fields fields;
	struct dp_expr *when; /* condition; NULL: always */
	/* Probes that come from a pattern. */
	bool waits;               /* pending: its places are looked up when a library is loaded */
	bool came;                /* it waited, and its library was loaded in one process; in another it may still come */
	bool reserved;            /* spare slot for one more place of the previous probe; not used yet */
	bool selected;            /* a failure of this probe does not stop the others */
	unsigned pattern;         /* number of the pattern, from 1 (dp_spec_has_pattern()); 0: the user named the place */
	bool many;                /* the pattern matches functions of any number of names, not all places of one function */
	char *build_id;           /* required build-id of its module; NULL: any */
	struct dp_error *refused; /* why it cannot be placed anywhere, or NULL */
};
/*
 * A valid event name for a spec: "main+0x10" -> "main_0x10", "0x55e0" -> "at_0x55e0", "libc.so.6!puts" -> "puts", "puts:return"
 * -> "puts_return".
 */
char *dp_probe_default_name(const struct dp_spec *spec);
/* The same as people type it: "main+0x10", "puts:return". NULL: it is no other, or there is no memory. */
char *dp_probe_default_shown(const struct dp_spec *spec, const char *name);
/* What text output calls it. */
static inline const char *dp_probe_shown(const struct dp_probe *p)
{
	return p->title ? p->title : p->shown ? p->shown : p->name;
}
void dp_probe_fini(struct dp_probe *probe);

#endif
