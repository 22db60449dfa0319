/* SPDX-License-Identifier: MIT */
/*
 * Stubs that pass their records to the LTTng sink. The fake sink does no more than agent/sink.h allows: it destroys every
 * register that it may change, and checks its arguments.
 */
#include "test_stub_world.h"

static struct {
	uint64_t room[DP_RECORD_MAX / 8 + 2]; /* for the record, and the words after it */
	bool refuse;
	unsigned entered, emitted, captured;
	uint64_t bytes;
	const struct dp_probe_desc *desc;
} sink;
struct dp_slot *sink_slot;

void sink_enter(void);
void sink_emit(void);
void world_thunk_emit_capture(void);
struct dp_record *enter_called(const struct dp_probe_desc *desc);
void emit_called(const struct dp_probe_desc *desc, struct dp_record *record, uint64_t bytes);
void world_emit_capture(struct dp_capture *c);

__asm__(".pushsection .text\n"
        ".macro SINK_ENTRY name, called\n"
        "\\name:\n"
        "	push %rdi; push %r8; push %r9; push %r10; push %r11; push %rbx; pushfq; cld\n"
        "	mov %rsp,%rbx\n"
        "	mov %rax,%rdi; mov %rcx,%rsi\n"
        "	subq $8192,world_sp(%rip); mov world_sp(%rip),%rcx; lea 8192-544(%rcx),%rsp\n"
        "	fxsave64 (%rsp); call \\called; fxrstor64 (%rsp)\n"
        "	mov %rbx,%rsp; addq $8192,world_sp(%rip)\n"
        "	popfq; pop %rbx; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi\n"
        "	mov %rax,%rcx; mov $0x5a5a5a5a5a5a5a5a,%rax; mov %rax,%rdx\n"
        "	add %rax,%rax\n"
        "	mov sink_slot(%rip),%rsi\n"
        "	ret\n"
        ".endm\n"
        "SINK_ENTRY sink_enter enter_called\n"
        "SINK_ENTRY sink_emit emit_called\n"
        "WORLD_HELPER emit_capture\n.popsection\n");

struct dp_record *enter_called(const struct dp_probe_desc *desc)
{
	sink.entered++;
	sink.desc = desc;
	if (sink.refuse) {
		((struct dp_lost *)desc->lost)->nested++;
		return NULL;
	}
	memset(sink.room, 0xee, sizeof(sink.room));
	cr_assert_leq(desc->reserve, DP_RECORD_MAX);
	return (struct dp_record *)(void *)(sink.room + 1);
}

void emit_called(const struct dp_probe_desc *desc, struct dp_record *record, uint64_t bytes)
{
	sink.emitted++;
	sink.bytes = bytes;
	cr_assert_eq(desc, sink.desc);
	cr_assert_eq((void *)record, (void *)(sink.room + 1));
}

void world_emit_capture(struct dp_capture *c)
{
	sink.captured++;
	cr_assert_eq(c->slot, sink_slot);
	sink.bytes = (uint64_t)(c->cursor - c->record->payload);
	cr_assert_eq(c->desc, sink.desc);
	cr_assert_eq((void *)c->record, (void *)(sink.room + 1));
}

/* ---- what was recorded ---- */

static const char memory_text[] = "some text";

struct expected {
	const struct machine *m;
	const struct dp_request *req;
	size_t seen;
};

static void check_computed(const struct dp_field *f, const struct dp_field_value *v, const struct machine *m)
{
	struct dp_regs regs = {.rflags = m->rflags};
	const struct dp_expr_env w = {.regs = &regs};
	uint64_t want = 0;
	memcpy(regs.gpr, m->gpr, sizeof(regs.gpr));
	const bool known = f->source == DP_SRC_EXPR && dp_expr_eval_in(f->expr, &w, &want);
	cr_expect_eq(v->unreadable, !known, "%s", f->name);
	cr_expect_eq(v->u, known ? want : 0, "%s: %lx not %lx", f->name, v->u, want);
}

static void check_value(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	struct expected *x = data;
	x->seen++;
	if (f->source == DP_SRC_EXPR || f->source == DP_SRC_NONE) {
		check_computed(f, v, x->m);
		return;
	}
	if (f->source == DP_SRC_REG)
		cr_expect_eq(v->u, x->m->gpr[f->reg], "%s", f->name);
	else if (f->source == DP_SRC_RFLAGS)
		cr_expect_eq(v->u, x->m->rflags, "%lx not %lx", v->u, x->m->rflags);
	else if (f->source == DP_SRC_RIP)
		cr_expect_eq(v->u, x->req->site);
	else if (f->source == DP_SRC_XMM)
		cr_expect(!memcmp(v->bytes, x->m->xmm[f->reg], 16));
	else if (f->source == DP_SRC_STRING)
		cr_expect(f->addr.v < 4096 ? v->unreadable : !strcmp((const char *)v->bytes, memory_text), "%s", f->name);
	else
		cr_expect(f->source == DP_SRC_UNWIND && !memcmp(v->bytes, &x->req->site, 8));
}

static void check_record(const struct probe *p, const struct machine *m)
{
	struct expected x = {.m = m, .req = &p->req};
	const struct dp_record *rec = (const struct dp_record *)(const void *)(sink.room + 1);
	const uint8_t *behind = (const uint8_t *)rec + sink.desc->reserve;
	bool calls = p->fields.n && sink.captured;
	cr_expect_eq(sink.emitted + sink.captured, 1);
	cr_expect_eq(sink.desc->event, p->req.event);
	cr_expect_eq(sink.desc->probe, WORLD_PROBE);
	cr_expect_eq(sink.desc->site, p->req.site);
	cr_assert(dp_fields_decode(&p->fields, rec->payload, sink.bytes, check_value, &x), "%lu bytes", sink.bytes);
	cr_expect_eq(x.seen, p->fields.n);
	cr_expect(calls || sink.bytes == dp_fields_max_payload(&p->fields));
	cr_expect_eq(sink.room[0], UINT64_C(0xeeeeeeeeeeeeeeee));
	cr_expect_eq(*behind, 0xee, "written beyond the reservation");
}

static void hit(struct probe *p, bool recorded)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	sink.entered = sink.emitted = sink.captured = 0;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, sink.captured ? DP_STUB_STACK_CALLS : DP_STUB_STACK);
	if (recorded)
		check_record(p, &in);
	else
		cr_expect_eq(sink.emitted + sink.captured, 0);
}

static void create(struct probe *p, const char *const *contexts, const char *when, bool near)
{
	world_create(near);
	sink_slot = &world.slot;
	world.rt.acquire = world.rt.finish = 1; /* invalid addresses: a call would crash */
	world.rt.enter = (uint64_t)&sink_enter;
	world.rt.emit = (uint64_t)&sink_emit;
	world.rt.emit_capture = (uint64_t)&world_thunk_emit_capture;
	probe_init(p, contexts, when);
	p->req.event = UINT64_C(0x1122334455667788);
}

static void destroy(struct probe *p)
{
	cr_expect(!world_bad_align);
	cr_expect_eq(world.slot.head, 0);
	probe_fini(p);
	world_destroy();
}

static void run(const char *const *contexts, const char *when, bool near, enum dp_identity identity)
{
	struct probe p;
	create(&p, contexts, when, near);
	world.rt.identity = identity;
	probe_place(&p, 16 * (machine_random() % 64), NULL);
	for (unsigned i = 0; i < 300; i++) {
		hit(&p, true);
		cr_expect_eq(sink.entered, 1);
	}
	destroy(&p);
}

static void run_everywhere(const char *const *contexts)
{
	run(contexts, NULL, false, DP_ID_SELF);
	run(contexts, NULL, true, DP_ID_TID);
	run(contexts, "rdi != 3 || rbx == 5", false, DP_ID_SELF);
	run(contexts, "(rflags & 2) && rsp * 3 + rax != rcx ^ 5", false, DP_ID_SELF);
}

static const char *const none[] = {NULL};
static const char *const one[] = {"reg:rdi", NULL};
static const char *const everything[] = {"regs", "reg:xmm0", "reg:xmm9", NULL};
static char text_context[64];
static const char *const called[] = {"reg:rcx", text_context, "reg:rsi", "string:bad:8", "reg:rflags", "reg:xmm3", NULL};
static const char *const unwound[] = {"backtrace:16", "regs", NULL};

static void make_contexts(void)
{
	snprintf(text_context, sizeof(text_context), "string[64]:text:0x%lx", (unsigned long)memory_text);
}

Test(stub_sink, no_field)
{
	run_everywhere(none);
}

Test(stub_sink, fields_without_calls)
{
	run_everywhere(one);
	run_everywhere(everything);
}

Test(stub_sink, fields_with_calls, .init = make_contexts)
{
	run_everywhere(called);
	run_everywhere(unwound);
}

/* ---- no record ---- */

static void run_refused(const char *const *contexts, const char *when)
{
	struct probe p;
	create(&p, contexts, when, false);
	probe_place(&p, 0, NULL);
	sink.refuse = true;
	for (unsigned i = 0; i < 200; i++)
		hit(&p, false);
	cr_expect_eq(world.lost.nested, 200);
	sink.refuse = false;
	destroy(&p);
}

Test(stub_sink, a_hit_that_the_sink_refuses_is_harmless, .init = make_contexts)
{
	run_refused(one, NULL);
	run_refused(called, NULL);
	run_refused(everything, "rdi != 3");
	run_refused(unwound, "rsp != 3");
}

Test(stub_sink, a_shut_gate_and_a_false_condition_never_enter, .init = make_contexts)
{
	static uint32_t gate;
	struct probe p;
	create(&p, called, "rdi == 7", false);
	probe_place(&p, 0, NULL);
	for (unsigned i = 0; i < 200; i++)
		hit(&p, false);
	cr_expect_eq(sink.entered, 0);
	destroy(&p);
	create(&p, called, NULL, false);
	p.req.gate[1] = (uint64_t)&gate;
	probe_place(&p, 0, NULL);
	for (unsigned i = 0; i < 200; i++) {
		gate = i % 2;
		hit(&p, gate);
		cr_expect_eq(sink.entered, gate);
	}
	destroy(&p);
}

Test(stub_sink, computed_fields)
{
	static struct dp_expr a = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}, b = {.kind = DP_EXPR_REG, .reg = 3, .size = 8},
	                      unit = {.kind = DP_EXPR_CONST, .value = 1},
	                      bit = {.kind = DP_EXPR_BINARY, .op = DP_OP_AND, .a = &b, .b = &unit},
	                      product = {.kind = DP_EXPR_BINARY, .op = DP_OP_MUL, .a = &a, .b = &b},
	                      quotient = {.kind = DP_EXPR_BINARY, .op = DP_OP_DIV, .a = &a, .b = &bit};
	static struct dp_field field[] = {
	        {.name = (char *)"reg", .source = DP_SRC_REG, .type = DP_TYPE_UINT, .size = 8, .reg = 1},
	        {.name = (char *)"product", .source = DP_SRC_EXPR, .type = DP_TYPE_UINT, .size = 8, .expr = &product},
	        {.name = (char *)"none", .source = DP_SRC_NONE, .type = DP_TYPE_INT, .size = 4},
	        {.name = (char *)"quotient", .source = DP_SRC_EXPR, .type = DP_TYPE_UINT, .size = 8, .expr = &quotient},
	};
	struct probe p;
	create(&p, NULL, "rdi != 3", false);
	p.fields = (struct dp_fields){field, sizeof(field) / sizeof(*field)};
	probe_place(&p, 0, NULL);
	for (unsigned i = 0; i < 300; i++)
		hit(&p, true);
	p.fields = (struct dp_fields){0};
	destroy(&p);
}
