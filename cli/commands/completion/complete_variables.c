/* SPDX-License-Identifier: MIT */
/* Candidates from debug information: variables, members, source files and their lines. Whatever fails offers nothing. */
#include "cli/commands/completion/completion.h"

#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"
#include "probes/point/select/more.h"
#include "probes/point/source/source_names.h"
#include "probes/probes.h"

#include <ctype.h>
#include <string.h>

/* ---- the word as an expression --------------------------------------------------------------------------------------------- */

struct path {
	const char *text; /* of "a > 4 && p->q[2].si" the "p->q[2]"; NULL: the word ends in a plain name */
	size_t n;
	const char *name; /* what was begun: "si" */
};

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '@';
}

/* Where the brackets begin that end before `at`; `at`: they have no begin. */
static const char *before_brackets(const char *from, const char *at)
{
	unsigned depth = 0;
	for (const char *p = at; p-- > from;) {
		depth += *p == ')' || *p == ']';
		if ((*p == '(' || *p == '[') && !--depth)
			return p;
	}
	return at;
}

/* The begin of the operand that ends before `at`: names, members, elements, calls and expressions in parentheses. */
static const char *operand_before(const char *from, const char *at)
{
	while (at > from) {
		const char *before = at;
		if (at[-1] == ')' || at[-1] == ']')
			before = before_brackets(from, at);
		else if (is_of_name(at[-1]) || at[-1] == '.' || at[-1] == ':')
			before = at - 1;
		else if (at - from > 1 && at[-1] == '>' && at[-2] == '-')
			before = at - 2;
		if (before == at)
			break;
		at = before;
	}
	return at;
}

static struct path path_of(const char *word)
{
	const char *end = word + strlen(word), *name = end, *at = NULL;
	while (name > word && (is_of_name(name[-1]) || (name - word > 1 && name[-1] == ':')))
		name--;
	if (name - word > 1 && name[-1] == '>' && name[-2] == '-')
		at = name - 2;
	else if (name - word > 1 && name[-1] == '.')
		at = name - 1;
	const char *from = at ? operand_before(word, at) : NULL;
	if (from && isdigit((unsigned char)*from))
		from = at; /* 1.5 */
	return (struct path){.text = from, .n = (size_t)(at - from), .name = name};
}

static void keep_before(struct dp_line *line, const char *at)
{
	line->nkept = (int)(at - line->kept);
	line->word = at;
}

/* ---- variables and members ------------------------------------------------------------------------------------------------- */

static bool offer_variable(struct dp_variable *v, void *data)
{
	dp_line_offer(data, v->name, v->is_parameter ? "argument" : "variable");
	return true;
}

/* Also those of bases and of unnamed members. */
static void offer_members(struct dp_line *line, struct dp_scope *s, const struct dp_ctype *record, unsigned depth)
{
	const struct dp_member *m;
	const size_t n = depth ? dp_ctype_members(dp_type_complete(s, record), &m) : 0;
	for (size_t i = 0; i < n; i++)
		if (!m[i].name)
			offer_members(line, s, m[i].type, depth - 1);
		else if (!m[i].is_artificial)
			dp_line_offer(line, m[i].name, dp_ctype_format(&s->arena, m[i].type));
}

static struct dp_error *offer_path(struct dp_line *line, struct dp_scope *s, const struct path *path)
{
	struct dp_operand o = {0};
	struct dp_ast *ast = NULL;
	char *text = dp_arena_alloc(&s->arena, path->n + 1);
	if (!text)
		return dp_error_nomem();
	memcpy(text, path->text, path->n);
	s->text = text;
	DP_TRY(dp_ast_parse(&s->arena, text, &ast));
	DP_TRY(dp_lower(s, ast, &o));
	if (o.type->kind == DP_CTYPE_POINTER || o.type->kind == DP_CTYPE_ARRAY)
		DP_TRY(dp_lower_deref(s, ast, o, &o));
	offer_members(line, s, o.type, 8);
	return NULL;
}

static struct dp_error *offer_names(struct dp_line *line, struct dp_scope *s)
{
	const struct path path = path_of(line->word);
	keep_before(line, path.name);
	if (path.text)
		return offer_path(line, s, &path);
	dp_variable_each(s, true, offer_variable, line);
	dp_variable_each(s, false, offer_variable, line);
	return NULL;
}

static void take_first(const struct dp_selection *found, struct dp_site *ret)
{
	if (!found->n)
		return;
	ret->function = found->item[0].function;
	ret->addr = dp_addr_add(ret->function.start, (int64_t)found->item[0].offset);
	ret->module = ret->function.module;
}

/* The first place that the spec means; no module: there is none. */
static struct dp_error *find_site(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret)
{
	struct dp_selection found = {0};
	bool known = false;
	struct dp_error *err = dp_spec_is_source(spec) ? dp_image_select(image, spec, NULL, 0, &found)
	                                               : dp_image_more(image, spec, false, &known, &found);
	if (!err && known)
		err = dp_image_resolve(image, spec, ret);
	else if (!err)
		take_first(&found, ret);
	dp_selection_fini(&found);
	return err;
}

static struct dp_error *offer_scope(struct dp_line *line, struct dp_image *image, const char *function)
{
	struct dp_scope_at at = {.point = DP_POINT_ENTRY};
	struct dp_spec spec = {0};
	struct dp_scope *scope = NULL;
	DP_TRY(dp_spec_parse(function, &spec));
	struct dp_error *err = find_site(image, &spec, &at.site);
	if (!err && at.site.module)
		err = dp_scope_create(image, &at, &scope);
	if (!err && scope)
		err = dp_scope_debug(scope);
	if (!err && scope)
		err = offer_names(line, scope);
	dp_scope_destroy(scope);
	dp_spec_fini(&spec);
	return err;
}

/* Those of the last function on the line. */
void dp_complete_variables(struct dp_line *line)
{
	static const char *const options[] = {"function", "return", "probe"};
	const char *function = NULL;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options) && !function; i++)
		function = dp_line_value(line, options[i]);
	struct dp_image *image = function ? dp_complete_image(line) : NULL;
	struct dp_error *err = image ? offer_scope(line, image, function) : NULL;
	dp_error_destroy(err);
	dp_image_destroy(image);
}

/* ---- source files ---------------------------------------------------------------------------------------------------------- */

/* As many of the path's last parts as the word has. */
static bool offer_file(const char *path, void *data)
{
	struct dp_line *line = data;
	const char *part = path + strlen(path);
	char text[512];
	unsigned parts = 1;
	for (const char *p = line->word; *p; p++)
		parts += *p == '/';
	while (part > path && (part[-1] != '/' || --parts))
		part--;
	snprintf(text, sizeof(text), "%s:", part);
	dp_line_offer(line, text, path);
	return line->left;
}

static bool offer_line_number(uint32_t number, void *data)
{
	struct dp_line *line = data;
	char text[16];
	snprintf(text, sizeof(text), "%u", number);
	dp_line_offer(line, text, NULL);
	return line->left;
}

/* FILE: for a beginning of FILE, and FILE:LINE for lines with code. */
static void offer_sources(struct dp_line *line, struct dp_module *m, const char *file)
{
	struct dp_debug *debug = NULL;
	struct dp_error *err = dp_source_is_near(m) ? dp_module_debug(m, &debug) : NULL;
	if (debug && file)
		dp_source_code_lines(debug, file, offer_line_number, line);
	else if (debug)
		dp_source_files_each(debug, offer_file, line);
	dp_error_destroy(err);
}

/* Only the program's own without a letter, as for functions. */
void dp_complete_sources(struct dp_line *line)
{
	char file[256] = "";
	const char *colon = strchr(line->word, ':');
	const bool has_file = colon && colon[1] != ':' && colon - line->word < (ptrdiff_t)sizeof(file);
	if (strpbrk(line->word, "*?![@+") || (colon && !has_file))
		return;
	if (has_file) {
		memcpy(file, line->word, (size_t)(colon - line->word));
		keep_before(line, colon + 1);
	}
	struct dp_image *image = dp_complete_image(line);
	const size_t n = !image ? 0 : *line->word || has_file ? dp_image_nmodules(image) : 1;
	for (size_t i = 0; i < n && i < dp_image_nmodules(image); i++)
		offer_sources(line, dp_image_module(image, i), has_file ? file : NULL);
	dp_image_destroy(image);
}
