/* SPDX-License-Identifier: MIT */
#include "probes/point/candidates.h"

#include <stdlib.h>
#include <string.h>

static void append(struct dp_candidates *c, struct dp_module *m, const struct dp_symbol *s)
{
	for (size_t i = 0; i < c->n; i++)
		if (dp_module_addr(c->item[i].module, c->item[i].symbol->value).v == dp_module_addr(m, s->value).v) {
			if (s->size && !c->item[i].symbol->size)
				c->item[i].symbol = s;
			return;
		}
	if (c->n == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 8;
		struct dp_candidate *grown = realloc(c->item, capacity * sizeof(*grown));
		if (!grown) {
			c->failed = true;
			return;
		}
		c->item = grown;
		c->capacity = capacity;
	}
	c->item[c->n++] = (struct dp_candidate){m, s};
}

void dp_candidates_add(struct dp_candidates *c, struct dp_module *m, bool debug, const struct dp_symbol_name *name)
{
	const struct dp_symbols *symbols = debug ? dp_module_debug_symbols(m) : dp_module_own_symbols(m);
	const struct dp_symbol_names *names = debug ? dp_module_debug_names(m) : dp_module_own_names(m);
	bool found = false;
	c->failed |= !names->head;
	for (unsigned hidden = 0; hidden < 2 && !found; hidden++)
		for (uint32_t i = dp_symbol_names_first(names, name); i; i = names->next[i - 1]) {
			const struct dp_symbol *s = &symbols->symbol[i - 1];
			if ((s->hidden && !hidden && !name->version) || !dp_symbol_matches(s, name))
				continue;
			if (!s->code) {
				c->data = c->data.symbol ? c->data : (struct dp_candidate){m, s};
				continue;
			}
			append(c, m, s);
			found = true;
		}
}

void dp_candidates_fini(struct dp_candidates *c)
{
	free(c->item);
	*c = (struct dp_candidates){0};
}
