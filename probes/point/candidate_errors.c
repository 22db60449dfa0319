/* SPDX-License-Identifier: MIT */
#include "base/path.h"
#include "probes/point/candidates.h"
#include "probes/point/places.h"
#include "probes/point/suggest.h"

#include <string.h>

#define SHOWN 10 /* lines of a list */

/* Makes the error from the finished message. */
static struct dp_error *finish(enum dp_tag tag, struct dp_buf *text)
{
	struct dp_error *err = text->failed ? dp_error_nomem() : dp_error(tag, "%s", dp_buf_str(text));
	dp_buf_fini(text);
	return err;
}

/* True if module!symbol names only this candidate. */
static bool unique(const struct dp_candidates *c, size_t at, bool *same_module)
{
	bool alone = true;
	*same_module = false;
	for (size_t i = 0; i < c->n; i++) {
		if (i == at || strcmp(c->item[i].module->name, c->item[at].module->name) != 0)
			continue;
		alone = false;
		*same_module = *same_module || c->item[i].module == c->item[at].module;
	}
	return alone;
}

/* The source file that the function was compiled from, if anything says; valid as long as the module. */
static const char *source_of(const struct dp_candidate *one)
{
	const char *file;
	int line;
	return dp_place_source(one->module, dp_module_addr(one->module, one->symbol->value), &file, &line) &&
	                       dp_place_file_typed(dp_path_last(file))
	               ? file
	               : NULL;
}

/* As little of the path as tells it from the other candidates'; NULL: nothing does. */
static const char *file_of(const struct dp_candidates *c, size_t at)
{
	const char *path = source_of(&c->item[at]);
	const char *last = path ? dp_path_last(path) : NULL;
	for (size_t i = 0; i < c->n && i < SHOWN && path; i++) {
		const char *other = i == at ? NULL : source_of(&c->item[i]);
		if (other && !strcmp(other, path))
			return NULL;
		if (other && !strcmp(dp_path_last(other), last))
			last = path;
	}
	return last;
}

static void print_same_module(const struct dp_candidates *c, size_t at, const char *symbol, struct dp_buf *text)
{
	const struct dp_candidate *one = &c->item[at];
	const unsigned long long vaddr = one->symbol->value, addr = dp_module_addr(one->module, vaddr).v;
	const char *file = file_of(c, at);
	if (file)
		dp_buf_printf(text, "\n  %s!%s@%s (at 0x%llx)", one->module->name, symbol, file, addr);
	else
		dp_buf_printf(text, "\n  %s!0x%llx (%s at 0x%llx)", one->module->name, vaddr, symbol, addr);
}

struct dp_error *dp_candidates_ambiguous(const struct dp_candidates *c, const struct dp_spec *spec)
{
	struct dp_buf text;
	dp_buf_init(&text);
	dp_buf_printf(&text, "'%s' names %zu functions; give one of these instead:", spec->text, c->n);
	for (size_t i = 0; i < c->n && i < SHOWN; i++) {
		const struct dp_candidate *one = &c->item[i];
		const unsigned long long addr = dp_module_addr(one->module, one->symbol->value).v;
		bool same_module;
		if (unique(c, i, &same_module))
			dp_buf_printf(&text, "\n  %s!%s (at 0x%llx)", one->module->name, spec->symbol, addr);
		else if (same_module)
			print_same_module(c, i, spec->symbol, &text);
		else
			dp_buf_printf(&text, "\n  0x%llx (%s!%s)", addr, one->module->path, spec->symbol);
		if (dp_candidate_replaces_libc(c, i))
			dp_buf_printf(&text, ", which the program uses");
	}
	if (c->n > SHOWN)
		dp_buf_printf(&text, "\n  and %zu more", c->n - SHOWN);
	return finish(DP_TAG_AMBIGUOUS, &text);
}

static void offer_all(struct dp_suggest *suggest, const struct dp_symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->symbol[i].code)
			dp_suggest_offer_part(suggest, symbols->symbol[i].name, symbols->symbol[i].len);
}

/* Mentions modules that could not be searched: they may have the symbol. */
static void print_unread(struct dp_image *image, const struct dp_spec *spec, struct dp_buf *text)
{
	size_t n = 0;
	const struct dp_module *first = NULL;
	for (size_t i = 0; i < image->nmodules; i++)
		if (!image->module[i]->elf && dp_module_matches(image->module[i], spec->module)) {
			first = first ? first : image->module[i];
			n++;
		}
	if (n)
		dp_buf_printf(text, " (%zu mapped file%s could not be searched: %s)", n, n == 1 ? "" : "s",
		              first->failure ? first->failure->message : first->path);
}

struct dp_error *dp_candidates_unknown(const struct dp_candidates *c, struct dp_image *image, const struct dp_spec *spec)
{
	struct dp_suggest suggest;
	struct dp_buf text;
	if (c->data.symbol)
		return dp_error(DP_TAG_NOT_CODE, "'%s' is not a function: in %s it is data", spec->symbol, c->data.module->name);
	struct dp_symbol_name name = dp_symbol_name_parse(spec->symbol);
	dp_suggest_init(&suggest, name.base, name.len);
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (!dp_module_matches(m, spec->module))
			continue;
		suggest.within = m->executable && !spec->module ? NULL : m->name;
		offer_all(&suggest, dp_module_own_symbols(m));
		offer_all(&suggest, dp_module_debug_symbols(m));
	}
	dp_buf_init(&text);
	dp_buf_printf(&text, "there is no function '%s' in %s", spec->symbol, spec->module ? spec->module : "the target");
	dp_suggest_print(&suggest, &text);
	print_unread(image, spec, &text);
	return finish(DP_TAG_NO_SYMBOL, &text);
}

/* Names that compilers and glibc give to implementations: NAME.avx2.0, __NAME_avx2, __NAME_sse2_unaligned. */
static bool implements(const struct dp_symbol *s, const char *name, size_t len)
{
	static const char *const units[] = {"sse",     "ssse",    "avx",  "evex", "erms",
	                                    "generic", "default", "arch", "fma",  "unaligned"};
	const char *p = s->name;
	if (!s->code || s->type != STT_FUNC)
		return false;
	p += strspn(p, "_");
	if (strncmp(p, name, len) != 0 || (p[len] != '_' && p[len] != '.'))
		return false;
	p += len + 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strncmp(p, units[i], strlen(units[i])))
			return true;
	return !strcmp(p, "c");
}

static void list_implementations(const struct dp_symbols *symbols, const char *name, struct dp_buf *text, unsigned *n)
{
	size_t len = strcspn(name, "@");
	while (*name == '_') {
		name++;
		len--;
	}
	for (size_t i = 0; i < symbols->n && *n < 2 * SHOWN; i++)
		if (implements(&symbols->symbol[i], name, len))
			dp_buf_printf(text, "%s%s", (*n)++ ? ", " : " ", symbols->symbol[i].name);
}

struct dp_error *dp_candidates_ifunc(const struct dp_candidate *c)
{
	struct dp_buf text;
	unsigned n = 0;
	dp_buf_init(&text);
	dp_buf_printf(&text, "'%s' in %s is an IFUNC: the program chose one of several implementations when it started; ",
	              c->symbol->name, c->module->name);
	size_t before = text.len;
	dp_buf_printf(&text, "probe one of them:");
	list_implementations(dp_module_own_symbols(c->module), c->symbol->name, &text, &n);
	list_implementations(dp_module_debug_symbols(c->module), c->symbol->name, &text, &n);
	if (!n && !text.failed) {
		text.len = before;
		dp_buf_printf(&text, "they have no symbols here: give the address of the one in use, or install debug symbols");
	}
	return finish(DP_TAG_NO_SYMBOL, &text);
}

struct dp_error *dp_candidates_no_module(const struct dp_image *image, const struct dp_spec *spec)
{
	struct dp_buf text;
	dp_buf_init(&text);
	dp_buf_printf(&text, "the target has no module '%s'; its modules:", spec->module);
	for (size_t i = 0; i < image->nmodules && i < 2 * SHOWN; i++)
		dp_buf_printf(&text, "%s %s", i ? "," : "", image->module[i]->name);
	if (image->nmodules > 2 * SHOWN)
		dp_buf_printf(&text, " and %zu more", image->nmodules - 2 * SHOWN);
	if (!image->nmodules)
		dp_buf_printf(&text, " none");
	return finish(DP_TAG_NO_MODULE, &text);
}
