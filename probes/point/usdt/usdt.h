/* SPDX-License-Identifier: MIT */
/*
 * USDT markers (sys/sdt.h): a nop in the text, and a note in .note.stapsdt that says where it is, what it is called, where its
 * arguments are at that moment, and which 16-bit counter (its semaphore) must not be 0 if the program is to prepare the arguments
 * at all.
 */
#ifndef DP_PROBES_USDT_H
#define DP_PROBES_USDT_H

#include "probes/point/usdt/usdt_args.h"
#include "probes/probes.h"

struct dp_usdt {                /* addresses are the file's; texts belong to the module */
	uint64_t pc, semaphore; /* 0: it has none */
	const char *provider, *name;
	const char *args; /* operand strings, as the assembler wrote them */
};

/* All markers of the module, in the order of their notes. Damaged notes are passed over. */
struct dp_error *dp_module_markers(struct dp_module *m, const struct dp_usdt **ret, size_t *n) DP_MUST_CHECK;
/* The marker whose nop is at `addr` in the target, or NULL; the first of several. */
const struct dp_usdt *dp_module_marker_at(struct dp_module *m, dp_addr addr);

#define DP_USDT_MAX_ARGS 32u
/*
 * The marker's arguments, with the addresses that they have in the target: at most DP_USDT_MAX_ARGS. One that cannot be found (a
 * thread-local operand, a symbol that was stripped) has the size 0.
 */
size_t dp_usdt_args(struct dp_module *m, const struct dp_usdt *marker, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS]);
/* The same for operands alone; `find` knows the addresses of symbols and may be NULL. */
typedef bool dp_usdt_find(const char *name, size_t len, uint64_t *addr, void *data);
size_t dp_usdt_args_parse(const char *text, dp_usdt_find *find, void *data, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS]);
/* usdt:PROVIDER:NAME or PROVIDER:NAME, with module! before it: what --usdt takes. */
struct dp_error *dp_spec_parse_usdt(const char *text, struct dp_spec *ret) DP_MUST_CHECK;

/* For places.c. */
struct dp_places;
struct dp_error *dp_usdt_select(struct dp_image *image, const struct dp_spec *spec, struct dp_places *ret) DP_MUST_CHECK;

#endif
