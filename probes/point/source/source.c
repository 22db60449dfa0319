/* SPDX-License-Identifier: MIT */
#include "probes/point/source/source.h"
#include "base/path.h"

#include "base/cleanup.h"
#include "probes/elf/demangle.h"
#include "probes/image/image_internal.h"
#include "probes/point/source/source_names.h"
#include "probes/point/suggest.h"

#include <string.h>

struct search {
	struct dp_image *image;
	const struct dp_spec *spec;
	struct dp_selection *found;
	struct dp_line_query line;
	bool relative_known;      /* FUNCTION:LINE: the function exists */
	size_t searched;          /* number of modules with debug information */
	struct dp_error *without; /* why the first module without debug information has none */
};

struct declared_in {
	struct search *s;
	struct dp_module *m;
	struct dp_debug *debug;
};

/* Line numbers are relative to the function's declaration. */
static void declared(Dwarf_Die *die, void *data)
{
	const struct declared_in *in = data;
	const char *file = dp_debug_decl_file(die);
	int line;
	if (!file || dwarf_decl_line(die, &line) || line <= 0)
		return;
	in->s->line = (struct dp_line_query){.file = file, .line = (uint32_t)line + in->s->spec->line};
	in->s->relative_known = true;
	dp_lines_find(in->m, in->debug, &in->s->line, in->s->found);
}

static void search_function(struct search *s, struct dp_module *m, struct dp_debug *debug)
{
	struct declared_in in = {s, m, debug};
	const struct dp_inline_query q = {
	        .name = s->spec->function,
	        .file = s->spec->file,
	        .declared = s->spec->has_line ? declared : NULL,
	        .data = &in,
	        .out_of_line = true,
	};
	dp_inline_find(m, debug, &q, s->found);
}

static void search_module(struct search *s, struct dp_module *m)
{
	const struct dp_spec *spec = s->spec;
	struct dp_debug *debug;
	struct dp_error *err = dp_module_debug(m, &debug);
	if (err) {
		dp_error_destroy(s->without ? err : dp_take(s->without, err));
		return;
	}
	s->searched++;
	if (spec->file && !dp_debug_mentions(debug, dp_path_last(spec->file)))
		return;
	if (spec->function)
		search_function(s, m, debug);
	else
		dp_lines_find(m, debug, &s->line, s->found);
	/* The name may be a file's although it does not look like one. */
	if (spec->function && !spec->file && !s->relative_known) {
		s->line = (struct dp_line_query){.file = spec->function, .line = spec->line};
		dp_lines_find(m, debug, &s->line, s->found);
	}
}

static struct dp_error *no_line(const struct search *s)
{
	const struct dp_line_query *q = &s->line;
	char near[128] = "";
	if (q->below && q->above)
		snprintf(near, sizeof(near), "; the nearest ones with code are %u and %u", q->below, q->above);
	else if (q->below || q->above)
		snprintf(near, sizeof(near), "; the nearest one with code is %u", q->below ? q->below : q->above);
	return dp_error(DP_TAG_NO_SYMBOL, "'%s': line %u of %s has no code%s", s->spec->text, q->line, q->path, near);
}

static bool offer_file(const char *path, void *data)
{
	const char *name = dp_path_last(path);
	dp_suggest_offer(data, name, strlen(name));
	return true;
}

static struct dp_error *no_file(const struct search *s)
{
	const char *where = s->spec->module ? s->spec->module : "the target", *wanted = dp_path_last(s->spec->file);
	struct dp_suggest suggest;
	struct dp_buf help = {0};
	dp_suggest_init(&suggest, wanted, strlen(wanted));
	for (size_t i = 0; i < s->image->nmodules; i++)
		if (s->image->module[i]->debug && dp_source_is_near(s->image->module[i]) &&
		    dp_module_matches(s->image->module[i], s->spec->module))
			dp_source_files_each(s->image->module[i]->debug, offer_file, &suggest);
	dp_suggest_print(&suggest, &help);
	struct dp_error *err = dp_error(
	        DP_TAG_NO_SYMBOL, "'%s': no source file of %s ends in '%s' (%zu of its modules ha%s debug information)%s",
	        s->spec->text, where, s->spec->file, s->searched, s->searched == 1 ? "s" : "ve", dp_buf_str(&help));
	dp_buf_fini(&help);
	return err;
}

static struct dp_error *nothing(struct search *s)
{
	const char *where = s->spec->module ? s->spec->module : "the target";
	if (s->line.file_known)
		return no_line(s);
	if (!s->searched && s->without)
		return dp_error_wrap(dp_take(s->without, NULL), "'%s' cannot be found without debug information", s->spec->text);
	if (s->spec->function)
		return dp_error(DP_TAG_NO_SYMBOL, "'%s': there is no function '%s'%s%s in the debug information of %s",
		                s->spec->text, s->spec->function, s->spec->file ? " of " : "", s->spec->file ? s->spec->file : "",
		                where);
	return no_file(s);
}

static bool is_of_file(const struct dp_symbol *s, const char *file)
{
	return s->type == STT_FUNC && s->file && (dp_path_ends(s->file, file) || !strcmp(dp_path_last(file), s->file));
}

static void by_symbols(const struct search *s, struct dp_module *m, const struct dp_symbol_index *index,
                       const struct dp_name_match *match)
{
	for (size_t i = 0; i < index->n; i++) {
		const struct dp_symbol *one = index->symbol[i];
		if (is_of_file(one, s->spec->file) &&
		    (!strcmp(one->name, s->spec->function) || dp_name_match_symbol(match, one->name)))
			dp_selection_add(s->found, m, one->value, false, NULL);
	}
}

/* Without debug information: the symbol table names the files of local functions. */
static struct dp_error *search_symbols(const struct search *s, struct dp_image *image)
{
	struct dp_name_match match;
	if (!dp_name_match_init(&match, s->spec->function))
		return dp_error_nomem();
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (!m->elf || m->vdso || !dp_module_matches(m, s->spec->module))
			continue;
		by_symbols(s, m, dp_module_own_index(m), &match);
		by_symbols(s, m, dp_module_debug_index(m), &match);
	}
	dp_name_match_fini(&match);
	return NULL;
}

struct dp_error *dp_source_select(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret)
{
	struct search s = {.image = image, .spec = spec, .line = {.file = spec->file, .line = spec->line}, .found = ret};
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (m->elf && !m->vdso && dp_module_matches(m, spec->module))
			search_module(&s, m);
	}
	const bool by_file = !ret->n && spec->function && spec->file && !spec->has_line;
	struct dp_error *err = by_file ? search_symbols(&s, image) : NULL;
	dp_selection_sort(ret);
	if (!err)
		err = ret->failed ? dp_error_nomem() : ret->n ? NULL : nothing(&s);
	dp_error_destroy(s.without);
	return err;
}
