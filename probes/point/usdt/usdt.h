/* SPDX-License-Identifier: MIT */
/*
 * USDT markers (sys/sdt.h): a nop in the text, and a note in .note.stapsdt with its address, name, the location of its arguments,
 * and an optional 16-bit counter (the semaphore). The program prepares the arguments only if the semaphore is not 0.
 */
#ifndef DP_PROBES_POINT_USDT_USDT_H
#define DP_PROBES_POINT_USDT_USDT_H

#include "probes/point/usdt/usdt_args.h"
#include "probes/image/image.h"
#include "probes/point/spec.h"

struct dp_usdt {                /* addresses are the file's; the module owns the texts */
	uint64_t pc, semaphore; /* 0: no semaphore */
	const char *provider, *name;
	const char *args; /* operands in assembler syntax */
};

/* All markers of the module, in the order of their notes. Skips damaged notes. */
struct dp_error *dp_module_markers(struct dp_module *m, const struct dp_usdt **ret, size_t *n) DP_MUST_CHECK;
/* The first marker whose nop is at `addr` in the target, or NULL. */
const struct dp_usdt *dp_module_marker_at(struct dp_module *m, dp_addr addr);

#define DP_USDT_MAX_ARGS 32u
/*
 * The marker's arguments, at most DP_USDT_MAX_ARGS, with target addresses. One that cannot be located (a thread-local operand, a
 * stripped symbol) has size 0.
 */
size_t dp_usdt_args(struct dp_module *m, const struct dp_usdt *marker, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS]);
/* Parses operands. `find` looks up symbols' addresses; it may be NULL. */
typedef bool dp_usdt_find(const char *name, size_t len, uint64_t *addr, void *data);
size_t dp_usdt_args_parse(const char *text, dp_usdt_find *find, void *data, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS]);

/* The places of the markers that `spec` names; select.c. */
struct dp_selection;
struct dp_error *dp_usdt_select(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret) DP_MUST_CHECK;

#endif
