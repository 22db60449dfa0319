/* SPDX-License-Identifier: MIT */
/*
 * A window displaces several instructions, and a thread may be between two of them. One scan finds this for all threads and all
 * waiting windows, once per hold, because stacks are long.
 */
#include "injector/patch/install.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/quiesce/quiesce.h"
#include "injector/target/group/group.h"

#include <stdlib.h>

#define NEAR 32u

enum group { UNKNOWN, QUIET, BUSY };
struct install_inspection {
	uint64_t *addr; /* of inner instructions, ascending */
	bool *hit;
	size_t n;
	enum group *group; /* may a thread return from the group's stubs? */
};

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static size_t count(const struct install *i, size_t from, size_t end)
{
	size_t n = 0;
	for (size_t k = from; k < end; k++)
		n += i->plans[k].ninterior;
	return n;
}

struct dp_error *dp_install_inspection_create(const struct install *i, size_t from, size_t end, struct install_inspection **ret)
{
	struct install_inspection *look = calloc(1, sizeof(*look));
	const size_t n = count(i, from, end);
	if (look) {
		look->addr = calloc(n + 1, sizeof(*look->addr));
		look->hit = calloc(n + 1, sizeof(*look->hit));
		look->group = calloc(i->t->nstanding + 1, sizeof(*look->group));
	}
	if (!look || !look->addr || !look->hit || !look->group) {
		dp_install_inspection_destroy(look);
		return dp_error_nomem();
	}
	for (size_t k = from; k < end; k++)
		for (size_t m = 0; m < i->plans[k].ninterior; m++)
			look->addr[look->n++] = i->plans[k].site + i->plans[k].interior[m];
	qsort(look->addr, look->n, sizeof(*look->addr), by_value);
	*ret = look;
	return NULL;
}

struct install_inspection *dp_install_inspection_destroy(struct install_inspection *look)
{
	if (!look)
		return NULL;
	free(look->addr);
	free(look->hit);
	free(look->group);
	free(look);
	return NULL;
}

void dp_install_inspection_take(struct install_inspection *look, const struct install *i, struct dp_freeze *f)
{
	if (look->n)
		dp_stands_at(i->t, f, look->addr, look->n, look->hit);
}

/*
 * A thread may return to a window's inner instructions from the stub of an older probe nearby, even of a removed one: until the
 * group is unmapped, threads may be inside.
 */
static bool may_come_back(struct install *i, struct dp_freeze *f, const struct dp_placed *p)
{
	char why[128];
	for (size_t n = 0; n < i->t->nstanding; n++) {
		const struct dp_installation *in = &i->t->resident[n]->in;
		struct dp_near near = dp_near(in, p->addr - NEAR + 1, p->addr + NEAR);
		enum group *is = &i->look->group[n];
		if (i->t->resident[n]->unmapped || dp_near_next(&near) == SIZE_MAX)
			continue;
		if (*is == UNKNOWN)
			*is = dp_quiesce(i->t, in, f, why) ? QUIET : BUSY;
		if (*is == BUSY)
			return true;
	}
	return false;
}

bool dp_install_inspection_busy(struct install *i, struct dp_freeze *f, size_t k)
{
	const struct install_inspection *look = i->look;
	const struct dp_plan *plan = &i->plans[k];
	for (size_t m = 0; m < plan->ninterior; m++) {
		const uint64_t at = plan->site + plan->interior[m];
		const uint64_t *found = bsearch(&at, look->addr, look->n, sizeof(at), by_value);
		/* Several windows may contain it. */
		if (!found || look->hit[found - look->addr])
			return true;
	}
	return plan->ninterior && may_come_back(i, f, &i->t->in.placed[k]);
}
