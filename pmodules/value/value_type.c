/* SPDX-License-Identifier: MIT */
/* Looks up types by name, in any unit of any module, and definitions of declared types. */
#include "base/path.h"
#include "pmodules/value/debug_ctx_internal.h"
#include "probes/dwarf/type_search.h"
#include "probes/image/module.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 1024, POINTERS_MAX = 8 };

static bool is_over(void *w)
{
	return dp_debug_ctx_is_over(w);
}

/* Searches the named module first, then all others. */
static const struct dp_ctype *search(struct dp_debug_ctx *w, struct dp_type_search *s, const char *object, bool far)
{
	const size_t n = dp_image_nmodules(w->image);
	s->is_over = is_over;
	s->data = w;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			struct dp_module *m = dp_image_module(w->image, i);
			if (!m->elf || (object && dp_path_ends(dp_module_path(m), object)) != (pass == 0) || (pass && !far))
				continue;
			if (dp_debug_ctx_is_over(w))
				return NULL;
			struct dp_debug *debug = dp_debug_ctx_debug(w, m);
			Dwarf_Die *found = debug ? dp_type_search(s, debug) : NULL;
			if (found)
				return dp_ctype_from(dp_debug_ctx_types(w, m), found);
		}
	return NULL;
}

/* ---- type names as users write them --------------------------------------------------------------------------------------- */

static const struct dp_ctype *plain(struct dp_debug_ctx *w, const char *name)
{
	const struct dp_ctype *c = dp_ctype_plain(name);
	struct dp_ctype *t = c && c->kind != DP_CTYPE_VOID ? dp_arena_alloc(&w->arena, sizeof(*t)) : NULL;
	if (!t)
		return c ? &dp_ctype_void : NULL;
	*t = *c;
	t->in = &w->basic;
	t->is_char = strstr(name, "char");
	t->name = t->text = t->base = dp_arena_copy(&w->arena, name, strlen(name));
	return t->text ? t : NULL;
}

static const char *behind_word(const char *text, const char *word)
{
	const size_t n = strlen(word);
	return !strncmp(text, word, n) && text[n] == ' ' ? text + n + strspn(text + n, " ") : NULL;
}

/* "const struct foo **" -> 's', "foo", 2 */
struct typed {
	char name[NAME_LENGTH];
	int tag;
	unsigned pointers;
	uint64_t elements;
	bool is_array;
};
static bool parse(const char *text, struct typed *ret)
{
	static const struct {
		const char *word;
		int tag;
	} words[] = {{"const", 0}, {"volatile", 0}, {"struct", 's'}, {"class", 's'}, {"union", 'u'}, {"enum", 'e'}};
	*ret = (struct typed){0};
	text += strspn(text, " \t");
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const char *rest = behind_word(text, words[i].word);
		if (!rest)
			continue;
		text = rest;
		ret->tag = words[i].tag ? words[i].tag : ret->tag;
		i = words[i].tag ? i : (size_t)-1;
	}
	size_t n = strlen(text);
	if (n >= sizeof(ret->name))
		return false;
	memcpy(ret->name, text, n + 1);
	char *open = n && ret->name[n - 1] == ']' ? strrchr(ret->name, '[') : NULL;
	if (open) {
		ret->is_array = true;
		ret->elements = strtoull(open + 1, NULL, 0);
		n = (size_t)(open - ret->name);
	}
	while (n && (ret->name[n - 1] == ' ' || ret->name[n - 1] == '*'))
		ret->pointers += ret->name[--n] == '*';
	ret->name[n] = 0;
	return n && ret->pointers <= POINTERS_MAX;
}

static const struct dp_ctype *find(struct dp_debug_ctx *w, const char *text, const char *object)
{
	struct typed typed;
	if (!parse(text, &typed))
		return NULL;
	const struct dp_ctype *t = typed.tag ? NULL : plain(w, typed.name);
	if (!t) {
		struct dp_name_match match;
		const bool loose =
		        (strchr(typed.name, '<') || strstr(typed.name, "::")) && dp_name_match_init(&match, typed.name);
		t = search(w, &(struct dp_type_search){.name = typed.name, .tag = typed.tag, .match = loose ? &match : NULL},
		           object, true);
		if (loose)
			dp_name_match_fini(&match);
	}
	for (unsigned i = 0; t && i < typed.pointers; i++)
		t = dp_ctype_pointer(t->in ? t->in : &w->basic, t);
	return t && typed.is_array ? dp_ctype_array(t->in ? t->in : &w->basic, t, typed.elements) : t;
}

const struct dp_ctype *dp_debug_ctx_type(struct dp_debug_ctx *w, const char *name, const char *object)
{
	struct dp_debug_ctx_name *x;
	const char *key = dp_arena_printf(&w->arena, "%s|%s", name, object ? object : "");
	for (x = key ? w->names : NULL; x; x = x->next)
		if (!strcmp(x->name, key))
			return x->type;
	x = key ? dp_arena_alloc(&w->arena, sizeof(*x)) : NULL;
	if (!x)
		return NULL;
	x->name = key;
	x->type = find(w, name, object);
	if (!x->type && dp_debug_ctx_is_over(w)) /* it may exist: the search was aborted */
		return NULL;
	x->next = w->names;
	w->names = x;
	return x->type;
}

/* ---- definitions --------------------------------------------------------------------------------------------------------- */

static const struct dp_ctype *complete(struct dp_debug_ctx *w, const struct dp_ctype *t, bool far)
{
	struct dp_ctype_copy *own = t->is_incomplete ? dp_ctype_copy_of(t) : NULL;
	if (!own)
		return t;
	if (!own->complete && !(far ? own->looked_far : own->looked) && dp_ctype_module(t) && *t->base) {
		Dwarf_Die die = t->die;
		struct dp_type_search s = {.name = dp_type_format_base(&w->arena, &die), .tag = t->is_union ? 'u' : 's'};
		own->looked = true;
		own->looked_far |= far;
		own->complete = search(w, &s, dp_module_path(dp_ctype_module(t)), far);
		if (!own->complete && dp_debug_ctx_is_over(w))
			own->looked = own->looked_far = false;
	}
	return own->complete && !own->complete->is_incomplete ? own->complete : t;
}

const struct dp_ctype *dp_ctype_complete(struct dp_debug_ctx *w, const struct dp_ctype *t)
{
	return complete(w, t, true);
}

const struct dp_ctype *dp_ctype_complete_near(struct dp_debug_ctx *w, const struct dp_ctype *t)
{
	return complete(w, t, false);
}

struct dp_value *dp_value_at(struct dp_debug_ctx *w, const char *type, uint64_t addr, const char *object)
{
	const struct dp_ctype *t = dp_debug_ctx_type(w, type, object);
	struct dp_value *v = t ? dp_value_create(w, t, NULL) : NULL;
	if (!v)
		return NULL;
	v->addr = addr;
	v->path = dp_arena_printf(&w->arena, "*(%s *)0x%llx", type, (unsigned long long)addr);
	return v;
}

struct dp_value *dp_value_literal(struct dp_debug_ctx *w, const char *type, uint64_t number, const char *object)
{
	const struct dp_ctype *t = dp_debug_ctx_type(w, type, object);
	struct dp_value *v = NULL;
	if (t && t->size <= sizeof(number) && (t->kind == DP_CTYPE_INT || t->kind == DP_CTYPE_POINTER))
		v = dp_value_create(w, t, NULL);
	const char *bytes = v ? dp_arena_copy(&w->arena, (const char *)&number, sizeof(number)) : NULL;
	if (!bytes)
		return NULL;
	v->where = DP_VALUE_BYTES;
	v->bytes = (const uint8_t *)bytes;
	v->nbytes = t->size;
	return v;
}
