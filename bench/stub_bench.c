/* SPDX-License-Identifier: MIT */
/*
 * The cost of a hit in a stub, beside that of a minimal hand-written detour on this machine. A small function is in memory of our
 * own; its first instructions are replaced by a jump to the code under test, which ends with the displaced instructions and a
 * jump back. Each round runs all variants, each compared with the bare function of the same round.
 *
 *	stub_bench [rounds]
 */
#include "base/buf.h"
#include "probes/probes.h"
#include "trampoline/arch/x86_64/emit/stub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 20, ARENA = 1 << 17, BATCH = 20000, ROUNDS = 101, MAX_VARIANTS = 64 };
enum { DISPLACED = 7 };              /* bytes of foo that the jump replaces */
enum { BARE, CLOCK, CLOCKS, FLOOR }; /* the first variants */

/* ---- the floor: timestamp and a 32-byte record in a per-thread ring, flags kept ---- */

__thread uint64_t floor_pos __attribute__((tls_model("local-exec")));
__thread uint8_t *floor_base __attribute__((tls_model("local-exec")));
extern const uint8_t floor_code[], floor_end[], clock_code[], clock_end[], false_code[], false_end[], foo_back[];
extern const uint8_t df_code[], df_end[], clocks_code[], clocks_end[];
int foo(int a, const char *b);

__asm__(".pushsection .text\n"
        "floor_code:\n"
        "	lea -128(%rsp),%rsp; push %rax; lahf; seto %al; push %rax; push %rcx; push %rdx\n"
        "	mov %fs:floor_pos@tpoff,%rcx\n"
        "	rdtsc; shl $32,%rdx; or %rdx,%rax\n"
        "	mov %fs:floor_base@tpoff,%rdx\n"
        "	mov %rax,(%rdx,%rcx); movq $42,8(%rdx,%rcx); mov %rdi,16(%rdx,%rcx); mov %rsi,24(%rdx,%rcx)\n"
        "	add $32,%ecx; and $0xfffff,%ecx\n"
        "	mov %rcx,%fs:floor_pos@tpoff\n"
        "	pop %rdx; pop %rcx; pop %rax; add $127,%al; sahf; pop %rax; lea 128(%rsp),%rsp\n"
        "floor_end:\n"
        "clock_code:\n"
        "	push %rax; push %rdx; rdtsc; pop %rdx; pop %rax\n"
        "clock_end:\n"
        "clocks_code:\n"
        "	push %rax; push %rdx; rdtsc; rdtsc; pop %rdx; pop %rax\n"
        "clocks_end:\n"
        "false_code:\n"
        "	lea -128(%rsp),%rsp; push %rax; lahf; seto %al\n"
        "	cmp $0x7999999,%edi; je floor_code\n"
        "	add $127,%al; sahf; pop %rax; lea 128(%rsp),%rsp\n"
        "false_end:\n"
        "df_code:\n" /* the cost of testing the direction flag */
        "	lea -128(%rsp),%rsp; push %rax; lahf; seto %al; push %rdx\n"
        "	pushfq; pop %rdx; test $0x400,%edx; jne floor_code\n"
        "	pop %rdx; add $127,%al; sahf; pop %rax; lea 128(%rsp),%rsp\n"
        "df_end:\n"
        "	.p2align 12\n"
        "foo:\n"
        "	push %rbp; mov %rsp,%rbp; movsbl (%rsi),%eax\n"
        "foo_back:\n"
        "	add %edi,%eax; pop %rbp; ret\n"
        "	.p2align 12\n.popsection\n");

/* ---- an agent that only starts the next round of the ring when it is full ---- */

struct dp_slot bench_slot;
void bench_acquire(void), bench_enter(void), bench_emit(void);
__asm__(".pushsection .text\n"
        "bench_acquire:\n"
        "	lea bench_slot(%rip),%rsi\n"
        "	mov 24(%rsi),%rdx\n"
        "	mov (%rsi),%rcx; add %rdx,%rcx; not %rdx; and %rdx,%rcx\n"
        "	mov 24(%rsi),%rdx; lea 1(%rcx,%rdx),%rdx; mov %rdx,8(%rsi)\n"
        "	mov 16(%rax),%edx; add %rcx,%rdx; mov %rdx,(%rsi)\n"
        "	mov 16(%rsi),%rcx\n"
        "	ret\n"
        "bench_enter:\n" /* a sink that does nothing */
        "	mov 16+bench_slot(%rip),%rcx\n"
        "bench_emit:\n"
        "	ret\n.popsection\n");
_Static_assert(offsetof(struct dp_slot, limit) == 8 && offsetof(struct dp_slot, base) == 16 &&
                       offsetof(struct dp_slot, mask) == 24 && offsetof(struct dp_probe_desc, reserve) == 16,
               "bench_acquire knows these");

/* Aggregations: state and cells; and the same in low memory, where the tool puts them if it can. */
struct answers {
	struct dp_agent agent;
	struct dp_aggs_head head;
	uint64_t block[4096 + 2 * DP_AGG_PAIRS];
};
static struct dp_agent agent;
static struct dp_lost lost __attribute__((aligned(4096)));
static struct dp_segment foo_segment;
static struct dp_text foo_text = {.segment = &foo_segment, .nsegments = 1};
static uint8_t *arena_free, *site, original[DISPLACED], foo_bytes[64];
static uint32_t *gates; /* near the stubs: one shut, one open */

static uint32_t tid_offset(uint64_t self)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid), off = 0;
	while (off < 2048 && *(volatile uint32_t *)(self + off) != tid)
		off += 4;
	return off;
}

static struct dp_runtime make_runtime(void)
{
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	bench_slot = (struct dp_slot){.mask = RING - 1, .limit = RING, .tid = (uint32_t)syscall(SYS_gettid)};
	bench_slot.base = (uint64_t)mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct dp_thread_entry *e = &agent.table[(self * DP_HASH_MULT) >> (64 - DP_TABLE_BITS)];
	*e = (struct dp_thread_entry){.key = self, .slot = (uint64_t)&bench_slot};
	return (struct dp_runtime){
	        .agent = (uint64_t)&agent, .acquire = (uint64_t)&bench_acquire, .tid_offset = tid_offset(self)};
}

/* ---- variants ---- */

static struct variant {
	const char *name;
	const uint8_t *code; /* NULL: the function alone */
	double ns[1024];
} variants[MAX_VARIANTS];
static size_t nvariants;

static void put_jump(uint8_t *at, const uint8_t *to)
{
	int32_t distance = (int32_t)(to - (at + 5));
	at[0] = 0xe9;
	memcpy(at + 1, &distance, 4);
}

/* Places `n` bytes of code at arena_free (64-aligned), and the displaced instructions after it. */
static void add_code(const char *name, const uint8_t *code, size_t n, size_t entry)
{
	uint8_t *at = arena_free;
	memcpy(at, code, n);
	memcpy(at + n, original, DISPLACED);
	put_jump(at + n + DISPLACED, site + DISPLACED);
	variants[nvariants].name = name;
	variants[nvariants++].code = at + entry;
	arena_free += (n + 64 + 63) & ~(size_t)63;
}

/* The second argument points here. */
static struct inner {
	uint64_t unused[2];
	int32_t len;
} hello_inner = {.len = 3};
static struct outer {
	char text[64];
	struct inner *q;
} hello = {.text = "a string of thirty-one letters!", .q = &hello_inner};

struct extra {
	const struct dp_expr *condition; /* instead of `when` */
	const struct dp_fields *fields;  /* instead of contexts */
	const char *when;
	const uint32_t *gate[2];
	const struct dp_agg *answer;
	uint16_t pair;
	bool enters;
	bool flags; /* preserved, although foo() does not use them */
};

static void add_stub(const char *name, const struct dp_runtime *rt, const char *const *contexts, struct extra extra)
{
	struct dp_fields fields = {0};
	struct dp_expr *expr = NULL;
	struct dp_error *err = NULL;
	struct dp_buf out;
	struct dp_stub stub = {0};
	dp_buf_init(&out);
	for (; *contexts && !err; contexts++)
		err = dp_fields_add(&fields, *contexts);
	if (extra.when && !err)
		err = dp_expr_parse(extra.when, &expr);
	struct dp_request req = {.site = (uint64_t)site, .lost = (uint64_t)&lost, .fields = &fields, .when = expr};
	req.hits = (uint64_t)&lost.hits;
	if (extra.condition)
		req.when = extra.condition;
	if (extra.fields)
		req.fields = extra.fields;
	for (size_t i = 0; i < 2; i++)
		req.gate[i] = (uint64_t)extra.gate[i];
	req.answer = extra.answer;
	req.pair = extra.pair;
	req.enters = extra.enters;
	req.text = extra.flags ? NULL : &foo_text;
	if (!err)
		err = dp_stub_emit(&out, (uint64_t)arena_free, rt, &req, &stub);
	if (err) {
		dp_error_print(err, stderr);
		exit(1);
	}
	add_code(name, out.data, out.len, stub.entry - (uint64_t)arena_free);
	dp_expr_destroy(expr);
	dp_fields_fini(&fields);
	dp_buf_fini(&out);
}

/* Gates near the stub, far from it, and before all kinds of stubs. */
static void add_gated(const struct dp_runtime *rt, const char *const *one)
{
	const uint32_t *far = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint32_t *shut = &gates[0], *open = &gates[1];
	struct dp_runtime sink = *rt;
	sink.enter = (uint64_t)&bench_enter;
	sink.emit = (uint64_t)&bench_emit;
	add_stub("gate shut", rt, one, (struct extra){.gate = {shut}});
	add_stub("gate shut, far away", rt, one, (struct extra){.gate = {far}});
	add_stub("second gate shut", rt, one, (struct extra){.gate = {open, shut}});
	add_stub("gate open, condition false", rt, one, (struct extra){.when = "rdi == 0x7999999", .gate = {open}});
	add_stub("two gates open, one field", rt, one, (struct extra){.gate = {open, open}});
	add_stub("sink: gates open, one field", &sink, one, (struct extra){.gate = {open, open}});
	add_code("a look at the direction flag", df_code, (size_t)(df_end - df_code), 0);
}

static const struct dp_decimal *make_decimal(void)
{
	static struct dp_decimal table __attribute__((aligned(64)));
	memset(table.bound, 0xff, sizeof(table.bound));
	for (unsigned i = 1; i < DP_AGG_DECIMAL_WORDS - 1; i++)
		table.bound[63 - __builtin_clzll((uint64_t)dp_decimal_from(i))] = (uint64_t)dp_decimal_from(i);
	table.bound[63] = 0;
	for (unsigned k = 1; k < 64; k++)
		table.below[k] = (uint8_t)dp_decimal_bucket((int64_t)((UINT64_C(1) << k) - 1));
	return &table;
}

/* `near`: the gate's address, or 0. */
static struct dp_runtime answers_runtime(const struct dp_runtime *rt, uint64_t near)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (near ? MAP_FIXED_NOREPLACE : 0);
	struct answers *s = mmap((void *)near, sizeof(*s), PROT_READ | PROT_WRITE, flags, -1, 0);
	struct dp_runtime with = *rt;
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	if (s == MAP_FAILED)
		exit(1);
	s->agent.live = DP_LIVE;
	with.answers = (struct dp_aggs){.head = (uint64_t)&s->head, .size = sizeof(s->block), .nblocks = 1, .pairs = 4096 * 8};
	s->agent.answer_key[(self * DP_HASH_MULT) >> (64 - DP_TABLE_BITS)] = self;
	s->agent.answer_block[(self * DP_HASH_MULT) >> (64 - DP_TABLE_BITS)] = (uint64_t)s->block;
	s->agent.answer_first[0] = self;
	with.agent = (uint64_t)&s->agent;
	with.cells = with.keyed = (uint64_t)&bench_acquire;
	with.tick_ns = UINT64_C(1) << 31;
	with.decimal = (uint64_t)make_decimal();
	return with;
}

static uint64_t emit(struct dp_buf *out, const struct dp_runtime *rt, const struct dp_request *req)
{
	struct dp_stub stub;
	struct dp_error *err = dp_stub_emit(out, (uint64_t)arena_free + out->len, rt, req, &stub);
	if (err) {
		dp_error_print(err, stderr);
		exit(1);
	}
	return stub.entry - (uint64_t)arena_free;
}

/* A call's entry and its return at one site: rsp is the same at both. */
static void add_pair(const char *name, const struct dp_runtime *rt, const struct dp_agg *answer)
{
	struct dp_fields none = {0};
	struct dp_request req = {.site = (uint64_t)site,
	                         .probe = DP_NO_PROBE,
	                         .lost = (uint64_t)&lost,
	                         .fields = &none,
	                         .pair = 1,
	                         .enters = true,
	                         .text = &foo_text};
	struct dp_buf out;
	dp_buf_init(&out);
	const uint64_t entry = emit(&out, rt, &req);
	const size_t jump = out.len;
	do
		dp_buf_put(&out, "\xe9\0\0\0\0", 5);
	while (out.len % 16);
	req.enters = false;
	req.probe = 0;
	req.answer = answer;
	const int32_t distance = (int32_t)(emit(&out, rt, &req) - (jump + 5));
	memcpy(out.data + jump + 1, &distance, 4);
	add_code(name, out.data, out.len, entry);
	dp_buf_fini(&out);
}

static void add_answers(const struct dp_runtime *rt)
{
	static const char *const none[] = {NULL};
	static struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8};
	static struct dp_expr took = {.kind = DP_EXPR_FACT, .value = DP_FACT_DURATION};
	static const struct dp_agg count = {.what = DP_AGG_COUNT}, log2 = {.what = DP_AGG_LOG2, .value = &arg},
	                           linear = {.what = DP_AGG_LINEAR, .value = &arg, .step = 10000, .buckets = 100},
	                           all = {.what = DP_AGG_SUM | DP_AGG_MIN | DP_AGG_MAX, .value = &arg},
	                           decimal = {.what = DP_AGG_DECIMAL, .value = &arg},
	                           time = {.what = DP_AGG_DECIMAL, .value = &took};
	const struct dp_runtime first = answers_runtime(rt, 0x30000000), far = answers_runtime(rt, 0);
	struct dp_runtime apart = first, bases = first;
	bases.identity = DP_ID_TID;
	bases.bases = true;
	apart.identity = DP_ID_TID;
	apart.answers.size = 2048; /* all threads' blocks in the memory that the others use for one */
	add_stub("count", &first, none, (struct extra){.answer = &count});
	add_stub("count, flags kept", &first, none, (struct extra){.answer = &count, .flags = true});
	add_stub("count, by base of fs", &bases, none, (struct extra){.answer = &count});
	add_stub("count, no %fs:0", &apart, none, (struct extra){.answer = &count});
	add_stub("count, cells far away", &far, none, (struct extra){.answer = &count});
	add_stub("count, condition false", &first, none, (struct extra){.answer = &count, .when = "rdi == 0x7999999"});
	add_stub("count, condition true", &first, none, (struct extra){.answer = &count, .when = "rdi != 0x7999999"});
	add_stub("sum, min, max", &first, none, (struct extra){.answer = &all});
	add_stub("log2 histogram", &first, none, (struct extra){.answer = &log2});
	add_stub("decimal histogram", &first, none, (struct extra){.answer = &decimal});
	add_stub("linear histogram", &first, none, (struct extra){.answer = &linear});
	add_pair("duration: entry and return", &first, &time);
	add_stub("duration: entry", &first, none, (struct extra){.pair = 1, .enters = true});
	add_stub("duration: return", &first, none, (struct extra){.pair = 1, .answer = &time});
}

static struct dp_expr arg1 = {.kind = DP_EXPR_REG, .reg = 6, .size = 8};

/* Conditions and fields through pointers, with loads that fault on unmapped memory. */
static void add_pointers(const struct dp_runtime *rt)
{
	static const char *const none[] = {NULL};
	static struct dp_expr to_q = {.kind = DP_EXPR_CONST, .value = offsetof(struct outer, q)},
	                      at_q = {.kind = DP_EXPR_BINARY, .op = DP_OP_ADD, .a = &arg1, .b = &to_q},
	                      q = {.kind = DP_EXPR_LOAD, .size = 8, .a = &at_q},
	                      to_len = {.kind = DP_EXPR_CONST, .value = offsetof(struct inner, len)},
	                      at_len = {.kind = DP_EXPR_BINARY, .op = DP_OP_ADD, .a = &q, .b = &to_len},
	                      len = {.kind = DP_EXPR_LOAD, .size = 4, .is_signed = true, .a = &at_len},
	                      four = {.kind = DP_EXPR_CONST, .value = 4},
	                      greater = {.kind = DP_EXPR_BINARY, .op = DP_OP_GT, .a = &len, .b = &four},
	                      equal = {.kind = DP_EXPR_MATCH, .a = &arg1, .text = (char *)"a string of thirty-one letter?"};
	static struct dp_field field[] = {
	        {.name = (char *)"a", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_REG, .reg = 7},
	        {.name = (char *)"p", .type = DP_TYPE_POINTER, .size = 8, .source = DP_SRC_REG, .reg = 6},
	        {.name = (char *)"q", .type = DP_TYPE_POINTER, .size = 8, .source = DP_SRC_EXPR, .expr = &q},
	        {.name = (char *)"len", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_EXPR, .expr = &len},
	        {.name = (char *)"text", .type = DP_TYPE_STRING, .size = 32, .source = DP_SRC_STRING, .expr = &arg1},
	};
	static const struct dp_fields typed = {field, 4}, with_text = {field, 5};
	struct dp_runtime guarded = *rt;
	guarded.faults = true;
	guarded.ask = rt->acquire; /* never called, but it must not be 0 */
	add_stub("false: p->q->len > 4", &guarded, none, (struct extra){.condition = &greater});
	add_stub("false: str(p) == 30 letters", &guarded, none, (struct extra){.condition = &equal});
	add_stub("four typed fields", &guarded, none, (struct extra){.fields = &typed});
	add_stub("four and a 32-byte string", &guarded, none, (struct extra){.fields = &with_text});
}

static void add_all(void)
{
	static const char *const none[] = {NULL}, *const one[] = {"reg:rdi", NULL}, *const regs[] = {"regs", NULL};
	static const char *const general[] = {"reg:rax", "reg:rbx", "reg:rcx", "reg:rdx", "reg:rsi", "reg:rdi",
	                                      "reg:rbp", "reg:rsp", "reg:r8",  "reg:r9",  "reg:r10", "reg:r11",
	                                      "reg:r12", "reg:r13", "reg:r14", "reg:r15", NULL};
	struct dp_runtime rt = make_runtime(), by_tid = rt;
	by_tid.identity = DP_ID_TID;
	variants[nvariants++].name = "bare call";
	add_code("rdtsc alone", clock_code, (size_t)(clock_end - clock_code), 0);
	add_code("two rdtsc", clocks_code, (size_t)(clocks_end - clocks_code), 0);
	add_code("floor: rdtsc, 32 bytes", floor_code, (size_t)(floor_end - floor_code), 0);
	add_code("floor: jump and back", clock_code, 0, 0);
	add_code("floor: condition false", false_code, (size_t)(false_end - false_code), 0);
	add_stub("no field", &rt, none, (struct extra){0});
	add_stub("one field", &rt, one, (struct extra){0});
	add_stub("16 registers", &rt, general, (struct extra){0});
	add_stub("16 registers, rip, rflags", &rt, regs, (struct extra){0});
	add_stub("false: rdi == K", &rt, one, (struct extra){.when = "rdi == 0x7999999"});
	add_stub("false: rdi == K, flags kept", &rt, one, (struct extra){.when = "rdi == 0x7999999", .flags = true});
	add_stub("false: rax == K", &rt, one, (struct extra){.when = "rax == 0x7999999"});
	add_stub("false: dil < 7 && edi > K", &rt, one, (struct extra){.when = "dil < 7 && edi > 0x7999999"});
	add_stub("false: rsp arithmetic", &rt, one, (struct extra){.when = "rsp + rdi * 3 == 77"});
	add_stub("false: hits == 0", &rt, one, (struct extra){.when = "hits == 0"});
	add_stub("false: hits % 100000000 == 0", &rt, one, (struct extra){.when = "hits % 100000000 == 0"});
	add_stub("condition true, one field", &rt, one, (struct extra){.when = "rdi != 0x9999999"});
	add_gated(&rt, one);
	add_pointers(&rt);
	add_answers(&rt);
	add_stub("one field, through acquire", &by_tid, one, (struct extra){0});
}

/* ---- measuring ---- */

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The loop with which the reference figures of other tools were measured. */
static __attribute__((noinline)) void batch(int n, const char *text)
{
	static int a;
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum += foo(a, text);
		if (++a == 1000000)
			a = 0;
	}
	__asm__ volatile("" ::"r"(sum));
}

static double measure(const struct variant *v)
{
	memcpy(site, original, DISPLACED);
	if (v->code)
		put_jump(site, v->code);
	batch(1000, hello.text);
	double start = now_ns();
	batch(BATCH, hello.text);
	return (now_ns() - start) / BATCH;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(size_t rounds)
{
	size_t middle = rounds / 2;
	for (size_t v = 0; v < nvariants; v++)
		qsort(variants[v].ns, rounds, sizeof(variants[v].ns[0]), by_value);
	const double *bare = variants[BARE].ns;
	double least = variants[FLOOR].ns[0] - bare[0], typical = variants[FLOOR].ns[middle] - bare[middle];
	printf("%-28s %8.2f %8.2f\n", "bare call, ns", bare[0], bare[middle]);
	printf("%-28s %8s %8s %8s %8s\n", "over the bare call, ns", "min", "median", "/ floor", "/ floor");
	for (size_t v = BARE + 1; v < nvariants; v++) {
		double min = variants[v].ns[0] - bare[0], median = variants[v].ns[middle] - bare[middle];
		printf("%-28s %8.2f %8.2f %8.2f %8.2f\n", variants[v].name, min, median, min / least, median / typical);
	}
}

/* Maps room for the stubs within reach of foo(), and makes foo()'s page writable. */
static bool make_room(void)
{
	site = (uint8_t *)(uintptr_t)&foo;
	memcpy(original, site, DISPLACED);
	foo_segment = (struct dp_segment){(uint64_t)site, foo_bytes, sizeof(foo_bytes), true};
	memcpy(foo_bytes, site, sizeof(foo_bytes));
	void *near = (void *)((uintptr_t)site - (UINT64_C(64) << 20));
	arena_free = mmap(near, ARENA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena_free != near)
		return false;
	gates = (uint32_t *)(void *)(arena_free + ARENA - 64);
	gates[1] = 1;
	floor_base = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (floor_base == MAP_FAILED || foo_back - site != DISPLACED)
		return false;
	return !mprotect((void *)((uintptr_t)site & ~UINT64_C(4095)), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS;
	rounds = rounds < 1 ? 1 : rounds > 1024 ? 1024 : rounds;
	if (!make_room())
		return 1;
	add_all();
	for (size_t r = 0; r < rounds; r++)
		for (size_t v = 0; v < nvariants; v++)
			variants[v].ns[r] = measure(&variants[v]);
	report(rounds);
	return 0;
}
