/* SPDX-License-Identifier: MIT */
/* Looks up types by name, in any unit of any module, and definitions of declared types. */
#include "pmodules/value/debug_ctx_internal.h"
#include "probes/debug/debug_names.h"
#include "probes/dwarf/type.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, STEPS_MAX = 1 << 22, STEPS_LOOK = 1 << 10, NAME_MAX_ = 1024, POINTERS_MAX = 8 };

struct search {
	const struct dp_debug_ctx *w;
	const char *name;           /* qualified, without keyword */
	struct dp_name_match match; /* for templates: arguments may be omitted */
	bool loose;
	int tag; /* 's', 'u', 'e', or 0: any */
	unsigned steps;
	Dwarf_Die exact, near;
};

static bool fits(int tag, int wanted)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return !wanted || wanted == 's';
	case DW_TAG_union_type:
		return !wanted || wanted == 'u';
	case DW_TAG_enumeration_type:
		return !wanted || wanted == 'e';
	case DW_TAG_typedef:
	case DW_TAG_base_type:
		return !wanted;
	default:
		return false;
	}
}

static bool is_container(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

static bool take(struct search *s, Dwarf_Die *die, const char *qualified)
{
	if (dwarf_hasattr(die, DW_AT_declaration))
		return false;
	if (!strcmp(qualified, s->name)) {
		s->exact = *die;
		return true;
	}
	if (s->loose && !s->near.addr && dp_name_match_text(&s->match, qualified))
		s->near = *die;
	return false;
}

static bool walk(struct search *s, Dwarf_Die *container, const char *scope, unsigned depth)
{
	Dwarf_Die child;
	char qualified[NAME_MAX_];
	if (depth > DEPTH_MAX || dwarf_child(container, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		const bool wanted = fits(tag, s->tag), holds = is_container(tag);
		const char *own = wanted || holds ? dwarf_diename(&child) : NULL;
		if (s->steps++ > STEPS_MAX || (s->steps % STEPS_LOOK == 0 && dp_debug_ctx_is_over(s->w)))
			return false;
		if (!wanted && !holds)
			continue;
		const int n = snprintf(qualified, sizeof(qualified), "%s%s%s", scope, *scope && own ? "::" : "", own ? own : "");
		if (n < 0 || (size_t)n >= sizeof(qualified))
			continue;
		if ((wanted && own && take(s, &child, qualified)) ||
		    (holds && (tag == DW_TAG_namespace || strstr(s->name, "::")) && walk(s, &child, qualified, depth + 1)))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

static bool in_module(struct dp_debug_ctx *w, struct dp_module *m, struct search *s)
{
	struct dp_debug *debug = dp_debug_ctx_debug(w, m);
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	bool found = false;
	if (!debug || !dp_debug_units_load(debug, &units))
		return false;
	(void)dp_debug_units_add_types(&units);
	dp_debug_units_mark_name(&units, dp_debug_word_of(s->name, &(struct dp_debug_word){{0}}));
	while (!found && !dp_debug_ctx_is_over(w) && (one = dp_debug_units_next(&units, true))) {
		s->steps = 0;
		found = walk(s, &one->die, "", 0);
	}
	dp_debug_units_fini(&units);
	return found || s->near.addr;
}

static bool is_called(const struct dp_module *m, const char *object)
{
	const char *path = dp_module_path(m);
	const size_t n = strlen(path), k = strlen(object);
	return n >= k && !strcmp(path + n - k, object) && (n == k || path[n - k - 1] == '/' || *object == '/');
}

/* Searches the named module first, then all others. */
static const struct dp_stype *search(struct dp_debug_ctx *w, struct search *s, const char *object, bool far)
{
	const size_t n = dp_image_nmodules(w->image);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			struct dp_module *m = dp_image_module(w->image, i);
			if (!m->elf || (object && *object && is_called(m, object)) != (pass == 0) || (pass && !far))
				continue;
			if (dp_debug_ctx_is_over(w))
				return NULL;
			if (in_module(w, m, s))
				return dp_stype_from(w, m, s->exact.addr ? &s->exact : &s->near);
		}
	return NULL;
}

/* ---- type names as users write them --------------------------------------------------------------------------------------- */

static const struct dp_stype *plain(struct dp_debug_ctx *w, const char *name)
{
	const struct dp_ctype *c = dp_ctype_plain(name);
	struct dp_stype *t = c ? dp_arena_alloc(&w->arena, sizeof(*t)) : NULL;
	if (!t || c->kind == DP_CTYPE_VOID)
		return t ? dp_stype_void(w) : NULL;
	*t = (struct dp_stype){.kind = c->kind == DP_CTYPE_FLOAT ? DP_STYPE_FLOAT : DP_STYPE_INT,
	                       .size = c->size,
	                       .is_signed = c->is_signed,
	                       .is_bool = c->is_bool,
	                       .is_char = c->kind == DP_CTYPE_INT && c->size == 1 && strstr(name, "char")};
	t->name.text = t->base.text = dp_arena_copy(&w->arena, name, strlen(name));
	return t->name.text ? t : NULL;
}

static const char *behind_word(const char *text, const char *word)
{
	const size_t n = strlen(word);
	return !strncmp(text, word, n) && text[n] == ' ' ? text + n + strspn(text + n, " ") : NULL;
}

/* "const struct foo **" -> 's', "foo", 2 */
struct typed {
	char name[NAME_MAX_];
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

static const struct dp_stype *find(struct dp_debug_ctx *w, const char *text, const char *object)
{
	struct typed typed;
	if (!parse(text, &typed))
		return NULL;
	const struct dp_stype *t = typed.tag ? NULL : plain(w, typed.name);
	if (!t) {
		struct search s = {.w = w, .name = typed.name, .tag = typed.tag};
		s.loose = (strchr(typed.name, '<') || strstr(typed.name, "::")) && dp_name_match_init(&s.match, typed.name);
		t = search(w, &s, object, true);
		if (s.loose)
			dp_name_match_fini(&s.match);
	}
	for (unsigned i = 0; t && i < typed.pointers; i++)
		t = dp_stype_pointer(w, t);
	return t && typed.is_array ? dp_stype_array(w, t, typed.elements) : t;
}

const struct dp_stype *dp_stype_find(struct dp_debug_ctx *w, const char *name, const char *object)
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

static const struct dp_stype *complete(struct dp_debug_ctx *w, const struct dp_stype *t, bool far)
{
	struct dp_stype *own = (struct dp_stype *)t;
	if (t->kind != DP_STYPE_RECORD || !t->is_incomplete)
		return t;
	if (!t->complete && !(far ? t->looked_far : t->looked) && t->module && t->base.text && *t->base.text) {
		Dwarf_Die die = t->die;
		struct search s = {.w = w, .name = dp_type_format_base(&w->arena, &die), .tag = t->is_union ? 'u' : 's'};
		own->looked = true;
		own->looked_far |= far;
		own->complete = (struct dp_stype *)search(w, &s, dp_module_path(t->module), far);
		if (!own->complete && dp_debug_ctx_is_over(w))
			own->looked = own->looked_far = false;
	}
	return t->complete && !t->complete->is_incomplete ? t->complete : t;
}

const struct dp_stype *dp_stype_complete(struct dp_debug_ctx *w, const struct dp_stype *t)
{
	return complete(w, t, true);
}

const struct dp_stype *dp_stype_complete_near(struct dp_debug_ctx *w, const struct dp_stype *t)
{
	return complete(w, t, false);
}

struct dp_value *dp_value_at(struct dp_debug_ctx *w, const char *type, uint64_t addr, const char *object)
{
	const struct dp_stype *t = dp_stype_find(w, type, object);
	struct dp_value *v = t ? dp_value_create(w, t, NULL) : NULL;
	if (!v)
		return NULL;
	v->addr = addr;
	v->path = dp_arena_printf(&w->arena, "*(%s *)0x%llx", type, (unsigned long long)addr);
	return v;
}

struct dp_value *dp_value_literal(struct dp_debug_ctx *w, const char *type, uint64_t number, const char *object)
{
	const struct dp_stype *t = dp_stype_find(w, type, object);
	struct dp_value *v = NULL;
	if (t && t->size <= sizeof(number) &&
	    (t->kind == DP_STYPE_INT || t->kind == DP_STYPE_ENUM || t->kind == DP_STYPE_POINTER || t->kind == DP_STYPE_REFERENCE))
		v = dp_value_create(w, t, NULL);
	const char *bytes = v ? dp_arena_copy(&w->arena, (const char *)&number, sizeof(number)) : NULL;
	if (!bytes)
		return NULL;
	v->where = DP_VALUE_BYTES;
	v->bytes = (const uint8_t *)bytes;
	v->nbytes = t->size;
	return v;
}
