/* SPDX-License-Identifier: MIT */
/*
 * Expressions of the language against C's own results. A library that gcc compiled (generate.py) has each expression in C. The
 * test parses the expression, resolves it at the entry of the library's site(), compiles it, and runs it here, with the registers
 * and memory that the library's C code uses.
 *
 * expression_diff LIBRARY [ROUNDS [SEED]]
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/expr/syntax/ast.h"
#include "tests/unit/trampoline/test_expr_machine.h"

#include <dlfcn.h>
#include <stdio.h>

enum { NOTHING = 7, STACK_WORDS = 64, SHOWN = 20 };

/* The same as in world.h. */
struct c_answer {
	uint64_t value;
	uint8_t size, is_signed, is_float, failed;
};
struct parameters {
	int pi;
	unsigned char pc;
	long pl;
	short ps;
	unsigned pu;
	void *pn;
	double pd;
	float pf;
	long stack_long;
	unsigned short stack_short;
	uint64_t gpr[16], xmm[16];
};
struct one_case {
	const char *text;
	void (*answer)(struct c_answer *r);
};
static struct {
	void (*randomize)(uint64_t seed);
	struct parameters *(*parameters)(void);
	const struct one_case *(*one_case)(unsigned i);
	void (*answer)(unsigned i, struct c_answer *r);
	uint64_t site;
} world;

static struct {
	unsigned cases, compared, failures, differences, refused, large;
} sum;

/* ---- the site ----------------------------------------------------------------------------------------------------------- */

static bool open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	*(void **)&world.randomize = dlsym(library, "world_randomize");
	*(void **)&world.parameters = dlsym(library, "world_parameters");
	*(void **)&world.one_case = dlsym(library, "world_case");
	*(void **)&world.answer = dlsym(library, "world_answer");
	world.site = (uint64_t)dlsym(library, "site");
	return world.randomize && world.parameters && world.one_case && world.answer && world.site;
}

static struct dp_error *own_image(struct dp_image **ret)
{
	struct dp_buf maps;
	char line[4096];
	dp_buf_init(&maps);
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f))
		dp_buf_put(&maps, line, strlen(line));
	if (f)
		fclose(f);
	struct dp_error *err = dp_image_create(dp_buf_str(&maps), "", getpid(), ret);
	dp_buf_fini(&maps);
	return err;
}

static struct dp_error *open_scope(struct dp_image *image, struct dp_scope **ret)
{
	char text[64];
	struct dp_spec spec;
	struct dp_scope_at at = {.point = DP_POINT_ENTRY};
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)world.site);
	DP_TRY(dp_spec_parse(text, &spec));
	struct dp_error *err = dp_image_resolve(image, &spec, &at.site);
	dp_spec_fini(&spec);
	return err ? err : dp_scope_create(image, &at, ret);
}

/* Like dp_scope_expr(), but keeps the type. */
static struct dp_error *lower(struct dp_scope *s, const char *text, struct dp_operand *o, struct dp_expr **ret)
{
	struct dp_ast *ast = NULL;
	s->text = text;
	*o = (struct dp_operand){0};
	DP_TRY(dp_ast_parse(&s->arena, text, &ast));
	DP_TRY(dp_lower(s, ast, o));
	DP_TRY(dp_lower_value(s, ast, o));
	return o->absent ? dp_error(DP_TAG_NO_VALUE, "%s", o->absent) : dp_build_finish(o->value, ret);
}

/* ---- the machine at the site -------------------------------------------------------------------------------------------- */

/* A register holds a narrow argument in its low part; the upper bits may have any value. */
static uint64_t with_rubbish(uint64_t value, unsigned size)
{
	const uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
	return (value & mask) | (machine_random() & ~mask);
}

static void enter_site(struct machine *m)
{
	struct parameters *p = world.parameters();
	uint64_t words[4] = {world.site, (uint64_t)p->stack_long, with_rubbish(p->stack_short, 2), 0};
	machine_randomize(m, stack);
	machine_fill(stack);
	m->gpr[DP_RSP] = (m->gpr[DP_RSP] & ~UINT64_C(15)) - 8;
	m->gpr[DP_RDI] = with_rubbish((uint64_t)p->pi, 4);
	m->gpr[DP_RSI] = with_rubbish(p->pc, 1);
	m->gpr[DP_RDX] = (uint64_t)p->pl;
	m->gpr[DP_RCX] = with_rubbish((uint64_t)p->ps, 2);
	m->gpr[DP_R8] = with_rubbish(p->pu, 4);
	m->gpr[DP_R9] = (uint64_t)p->pn;
	memcpy(m->xmm[0], &p->pd, sizeof(p->pd));
	memcpy(m->xmm[1], &p->pf, sizeof(p->pf));
	memcpy((void *)m->gpr[DP_RSP], words, sizeof(words));
	memcpy(p->gpr, m->gpr, sizeof(p->gpr));
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------- */

static double real_of(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static bool same_value(const struct c_answer *c, uint64_t value)
{
	return c->value == value || (c->is_float && __builtin_isnan(real_of(c->value)) && __builtin_isnan(real_of(value)));
}

static bool is_true(const struct c_answer *c)
{
	return c->is_float ? real_of(c->value) != 0 : c->value != 0;
}

static void differ(const char *text, const char *what, const struct c_answer *c, const struct verdict *v)
{
	if (sum.differences++ < SHOWN)
		fprintf(stderr, "DIFFERENT (%s): %s\n  C: 0x%llx%s (%g), %u bytes, %s; dynprobe: 0x%llx%s (%g)\n", what, text,
		        (unsigned long long)c->value, c->failed ? " failed" : "", real_of(c->value), c->size,
		        c->is_float    ? "floating"
		        : c->is_signed ? "signed"
		                       : "unsigned",
		        (unsigned long long)v->value, v->failed ? " failed" : "", real_of(v->value));
}

/* C's result has the promoted type, so compare that. */
static void compare_type(const char *text, const struct dp_operand *o, const struct c_answer *c)
{
	const struct dp_ctype *t = dp_promoted(o);
	const bool is_float = t->kind == DP_CTYPE_FLOAT, is_signed = t->kind == DP_CTYPE_INT && t->is_signed;
	if (o->is_constant) /* a constant has no type yet */
		return;
	if (is_float != c->is_float || t->size != c->size || (is_signed != c->is_signed && !is_float))
		differ(text,
		       is_float    ? "type: floating"
		       : is_signed ? "type: signed"
		                   : "type: unsigned",
		       c, &(struct verdict){.value = t->size});
}

static void run_case(const char *text, const struct dp_expr *e, const struct c_answer *c, const struct machine *in, bool truth)
{
	static struct verdict v;
	struct machine out;
	if (!compile(e, truth, &v)) {
		sum.large++;
		return;
	}
	v = (struct verdict){truth ? 0 : NOTHING, 0};
	machine_run(in, &out, code);
	sum.compared++;
	sum.failures += v.failed != 0;
	if (c->failed != (v.failed != 0))
		differ(text, truth ? "failure of a condition" : "failure", c, &v);
	else if (!c->failed && (truth ? (v.value != 0) != is_true(c) : !same_value(c, v.value)))
		differ(text, truth ? "truth" : "value", c, &v);
}

static void run_round(struct dp_scope *scope, unsigned i, const char *text)
{
	struct dp_operand o, condition;
	struct dp_expr *e = NULL, *t = NULL;
	struct c_answer c;
	struct machine in;
	enter_site(&in);
	world.answer(i, &c);
	struct dp_error *err = lower(scope, text, &o, &e);
	if (!err && o.type->kind == DP_CTYPE_FLOAT) {
		char *whole;
		if (asprintf(&whole, "(%s) != 0", text) > 0) {
			err = lower(scope, whole, &condition, &t);
			free(whole);
		}
	}
	if (err) {
		if (sum.refused++ < SHOWN)
			fprintf(stderr, "REFUSED: %s\n  %s\n", text, err->message);
		dp_error_destroy(err);
	} else {
		compare_type(text, &o, &c);
		run_case(text, e, &c, &in, false);
		run_case(text, t ? t : e, &c, &in, true);
	}
	dp_expr_destroy(e);
	dp_expr_destroy(t);
}

static struct dp_error *run(unsigned rounds, unsigned seed)
{
	struct dp_image *image = NULL;
	const struct one_case *one;
	DP_TRY(own_image(&image));
	for (unsigned n = 0; n < rounds; n++) {
		struct dp_scope *scope = NULL;
		DP_TRY(open_scope(image, &scope));
		world.randomize(seed + n);
		for (unsigned i = 0; (one = world.one_case(i)); i++) {
			rt.faults = i % 8 != 0;
			run_round(scope, i, one->text);
			sum.cases++;
			if (i % 50 == 49) { /* start again before the arena reaches its limit */
				dp_scope_destroy(scope);
				DP_TRY(open_scope(image, &scope));
			}
		}
		dp_scope_destroy(scope);
	}
	dp_image_destroy(image);
	return NULL;
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 4,
	               seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 1;
	if (argc < 2 || !open_library(argv[1]) || !expr_machine_setup())
		return 2;
	struct dp_error *err = run(rounds, seed);
	if (err) {
		fprintf(stderr, "%s\n", err->message);
		return 2;
	}
	printf("%u cases, %u compared, %u failed on both sides, %u refused, %u too large, %u differences\n", sum.cases,
	       sum.compared, sum.failures, sum.refused, sum.large, sum.differences);
	return sum.differences || sum.refused || !sum.compared;
}
