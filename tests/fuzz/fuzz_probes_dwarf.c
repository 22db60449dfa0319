/* SPDX-License-Identifier: MIT */
/*
 * Damaged debug information. The input is a list of changes to the sections of a small program, which the compiler makes when the
 * fuzzer starts: which section (1 byte), where (2), how many bytes (1), the bytes. Then the fuzzer reads all kinds of debug
 * information: location expressions and lists, types, frames, lines, inlined functions.
 */
#include "probes/expr/scope/scope.h"
#include "probes/point/select/more.h"
#include "probes/probes.h"
#include "tests/fuzz/damaged.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char source[] =
        "enum e { A, B = -2 }; struct s { int a; unsigned b : 5; struct s *next; char name[8]; union { long l; double d; }; };\n"
        "static __thread int tls; static struct s all[3]; volatile long sink;\n"
        "static inline long twice(struct s *p, int n) { long w = p->a * n; sink = w; return w > 3 ? w + p->b : n; }\n"
        "__attribute__((noinline)) long work(struct s *p, int n, double d, float f, enum e e, struct s by_value) {\n"
        "long sum = 0; for (int i = 0; i < n; i++) { struct s *q = &all[i % 3]; sum += twice(q, i) + q->b + (long)d; tls += i; "
        "}\n"
        "sink = sum + twice(p, n + e) + by_value.a; return sum + (long)f; }\n"
        "int main(int c, char **v) { (void)v; struct s x = {c}; return (int)work(&x, c, c, c, B, x); }\n";
enum { SECTIONS = DAMAGED_SECTIONS, VARIANTS = 3 };

static struct damaged variants[VARIANTS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flags[VARIANTS] = {"gcc -O2 -gdwarf-5", "gcc -O0 -gdwarf-4", "clang -O2 -gdwarf-5"};
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < VARIANTS; i++)
		damaged_build(&variants[i], flags[i], "c", source);
	return 0;
}

/* ---- queries ------------------------------------------------------------------------------------------------------------ */

static void take(struct dp_error *err)
{
	if (err && err->tag == DP_TAG_INTERNAL)
		abort();
	dp_error_destroy(err);
}

static void ask_at(struct dp_image *image, uint64_t pc, enum dp_point point)
{
	static const char *const contexts[] = {"args", "locals",        "*p",     "all[1]",          "by_value",
	                                       "tls",  "p->next->name", "retval", "(struct s *)$rdi"};
	char text[64];
	struct dp_spec spec;
	struct dp_scope_at at = {.point = point};
	struct dp_scope *scope = NULL;
	struct dp_expr *e = NULL;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)pc);
	if (dp_spec_parse(text, &spec))
		abort();
	struct dp_error *err = dp_image_resolve(image, &spec, &at.site);
	dp_spec_fini(&spec);
	if (!err)
		err = dp_scope_create(image, &at, &scope);
	take(err);
	for (size_t i = 0; scope && i < sizeof(contexts) / sizeof(*contexts); i++) {
		struct dp_fields fields = {0};
		take(dp_scope_fields(scope, contexts[i], &fields));
		dp_fields_fini(&fields);
	}
	if (scope) {
		take(dp_scope_expr(scope, "q->next->a + sum * w > B && p->l", &e));
		dp_expr_destroy(e);
	}
	dp_scope_destroy(scope);
}

static void ask_places(struct dp_image *image)
{
	static const char *const specs[] = {"a.c:4", "work@a.c", "twice"};
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct dp_spec spec;
		struct dp_selection found = {0};
		bool known;
		if (dp_spec_parse(specs[i], &spec))
			abort();
		struct dp_error *err = dp_spec_is_source(&spec) ? dp_image_select(image, &spec, NULL, 0, &found)
		                                                : dp_image_more(image, &spec, true, &known, &found);
		take(err);
		dp_selection_fini(&found);
		dp_spec_fini(&spec);
	}
}

static void ask(const char *maps, const struct damaged *v, unsigned step)
{
	struct dp_image *image = NULL;
	struct dp_error *err = dp_image_create(maps, "", 0, &image);
	if (!err) {
		ask_at(image, v->work, DP_POINT_ENTRY);
		ask_at(image, v->work + step * 5 % (v->end - v->work), DP_POINT_PLACE);
		ask_at(image, v->end - 1, DP_POINT_RETURN);
		ask_places(image);
		dp_image_destroy(image);
	}
	take(err);
}

static void change(uint8_t *bytes, const struct damaged *v, const uint8_t *data, size_t size)
{
	while (size > 4) {
		const unsigned k = data[0] % SECTIONS;
		const size_t from = data[1] | (size_t)data[2] << 8;
		size_t n = data[3];
		data += 4;
		size -= 4;
		n = n < size ? n : size;
		for (size_t i = 0; i < n && from + i < v->len[k]; i++)
			bytes[v->at[k] + from + i] = data[i];
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const struct damaged *v = &variants[data[0] % VARIANTS];
	uint8_t *bytes = malloc(v->size);
	char maps[256];
	int fd = -1;
	if (bytes) {
		memcpy(bytes, v->bytes, v->size);
		change(bytes, v, data + 1, size - 1);
		fd = damaged_file(bytes, v->size, maps, sizeof(maps));
	}
	if (fd >= 0)
		ask(maps, v, data[0] / VARIANTS);
	close(fd);
	free(bytes);
	return 0;
}
