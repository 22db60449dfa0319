/* SPDX-License-Identifier: MIT */
/*
 * The language, with tests/expressions/world.h as the program: any text is refused, with a caret where its grammar is wrong, or
 * it is a condition and fields that compile. Texts: -t and --when with names and without, and the printf form. Dictionary:
 * language.dict.
 */
#include "probes/expr/scope/scope.h"
#include "probes/expr/syntax/printf_form.h"
#include "trampoline/arch/x86_64/expr/expr.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dp_image *image;
static struct dp_scope_at at = {.point = DP_POINT_ENTRY};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* An error about the size of the whole expression has no position. */
static bool is_about_all(const char *message)
{
	return strstr(message, "steps to compute") || strstr(message, " fields") || strstr(message, "record too large");
}

static void check(struct dp_error *err)
{
	if (err && err->tag == DP_TAG_SYNTAX && !strchr(err->message, '^') && !is_about_all(err->message)) {
		fprintf(stderr, "without a caret: %s\n", err->message);
		abort();
	}
	if (err && (err->tag == DP_TAG_INTERNAL || err->tag == DP_TAG_NOMEM)) {
		fprintf(stderr, "%s\n", err->message);
		abort();
	}
	dp_error_destroy(err);
}

/* Loads world.h as a library. It is small: an unknown name is searched for in all of it. */
static void *load(void)
{
	char dir[] = "/tmp/dp-fuzz-language-XXXXXX", text[2048];
	const char *here = __FILE__, *slash = strrchr(here, '/');
	if (!mkdtemp(dir))
		abort();
	snprintf(text, sizeof(text),
	         "cd %s && printf '#include \"world.h\"\\nconst struct one_case cases[1]; const unsigned ncases;' > a.c && "
	         "gcc -g -w -shared -fPIC -I %.*s/../expressions -o a.so a.c -lm",
	         dir, (int)(slash - here), here);
	if (system(text))
		abort();
	snprintf(text, sizeof(text), "%s/a.so", dir);
	void *library = dlopen(text, RTLD_NOW);
	if (!library)
		abort();
	return dlsym(library, "site");
}

/* The library's own lines of /proc/self/maps. */
static void read_maps(char *maps, size_t size)
{
	char line[512];
	size_t n = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "dp-fuzz-language-") && n + strlen(line) < size)
			n += (size_t)sprintf(maps + n, "%s", line);
	if (f)
		fclose(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char maps[8192] = "", name[64];
	struct dp_spec spec;
	(void)argc;
	(void)argv;
	snprintf(name, sizeof(name), "%p", load());
	read_maps(maps, sizeof(maps));
	struct dp_error *err = dp_image_create(maps, "", getpid(), &image);
	if (!err)
		err = dp_spec_parse(name, &spec);
	if (!err)
		err = dp_image_resolve(image, &spec, &at.site);
	if (err) {
		fprintf(stderr, "%s\n", err->message);
		abort();
	}
	dp_spec_fini(&spec);
	return 0;
}

static void compile(const struct dp_expr *e, bool truth)
{
	const struct dp_runtime rt = {.agent = 0x10000000, .ask = 0x10001000, .faults = true, .tick_ns = 1};
	struct dp_buf out;
	struct dp_asm a;
	if (!e)
		return;
	dp_buf_init(&out);
	dp_asm_init(&a, &out, 0x20000000);
	struct dp_expr_code c = {.a = &a, .rt = &rt, .view = dp_view_at(truth ? dp_expr_level(&rt, e) : DP_VIEW_FULL, 0)};
	struct dp_label yes = dp_asm_label(&a);
	dp_exits_init(&a, e, &c.exits);
	if (truth)
		dp_expr_jump(&c, e, true, yes);
	else
		dp_expr_value(&c, e);
	dp_asm_bind(&a, yes);
	if (c.exits.n)
		dp_exits_put(&a, &c.exits);
	if (!dp_asm_finish(&a) && out.len > 1 << 16)
		abort();
	dp_buf_fini(&out);
}

static void condition(struct dp_scope *scope, const char *text)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_scope_expr(scope, text, &e);
	if (!err != (e != NULL))
		abort();
	check(err);
	compile(e, true);
	dp_expr_destroy(e);
}

static void fields(struct dp_scope *scope, const char *text)
{
	struct dp_fields all = {0};
	struct dp_error *err = dp_scope_fields(scope, text, &all);
	if (err && all.n)
		abort();
	check(err);
	for (size_t i = 0; i < all.n; i++)
		compile(all.field[i].expr, false);
	dp_fields_max_payload(&all);
	dp_fields_fini(&all);
}

static void with_a_program(const char *text)
{
	struct dp_scope *scope = NULL;
	check(dp_scope_create(image, &at, &scope));
	condition(scope, text);
	fields(scope, text);
	dp_scope_destroy(scope);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_printf_form *form = NULL;
	char *text = strndup((const char *)data, size);
	if (!text)
		return 0;
	check(dp_scope_check(text));
	check(dp_context_check(text));
	dp_scope_has_names(text);
	condition(NULL, text);
	with_a_program(text);
	if (*text == '"' || dp_printf_begins(text)) {
		struct dp_error *err = dp_printf_parse(text + (*text == '"' ? 0 : dp_printf_begins(text)), &form);
		if (!err)
			dp_printf_destroy(form);
		check(err);
	}
	free(text);
	return 0;
}
