/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables of a process that has mapped more code since its probes were installed (decision 0080).
 *
 * Hits use the tables all the time, and a thread may lose its processor in the middle of a walk for as long as it likes. So
 * tables never change: new ones, of all code, are written behind the old ones, and one word says where the latest begin. The room
 * is reserved at the start, as a hole in the file: it takes addresses, and no memory until it is used.
 */
#include "agent/unwind/unwind.h"
#include "injector/target/shared.h"

#include <string.h>

#define TABLES_ALIGN 64u
#define TABLES_TIMES 1000u /* new tables for one process; each has a generation of its own */
_Static_assert(TABLES_TIMES < DP_UNWIND_GENERATIONS - 1, "entries of the hits' caches are told apart by it");

uint64_t dp_tables_room(const struct dp_target *t, uint64_t size)
{
	const bool limited = t->ahead || t->limits.address.most != UINT64_MAX || dp_file_most() <= DP_TABLES_MAX * 1024;
	return size && size < DP_TABLES_MAX && !limited ? DP_TABLES_MAX - size : 0;
}

void dp_tables_began(struct dp_target *t, const struct dp_unwind *tables, uint64_t size)
{
	t->tables_used = size;
	t->tables_generation = tables->generation;
	t->tables_times = 0;
}

bool dp_target_replace_tables(struct dp_target *t, void *tables, size_t size)
{
	const struct dp_region *r = &t->in.region[DP_REGION_TABLES];
	const uint64_t at = (t->tables_used + TABLES_ALIGN - 1) & ~(uint64_t)(TABLES_ALIGN - 1);
	struct dp_unwind *head = tables;
	if (!t->installed || !t->tables_used || at + size > r->size || t->tables_times == TABLES_TIMES)
		return false;
	head->generation = t->tables_generation % (DP_UNWIND_GENERATIONS - 1) + 1;
	struct dp_error *err = dp_file_write(t->memfd, tables, size, r->offset + at);
	if (err) {
		dp_error_destroy(err);
		return false;
	}
	__atomic_store_n(&((struct dp_control *)(void *)t->data)->unwind_latest, at, __ATOMIC_RELEASE);
	t->tables_used = at + size;
	t->tables_generation = head->generation;
	t->tables_times++;
	return true;
}
