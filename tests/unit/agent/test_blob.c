/* SPDX-License-Identifier: MIT */
/* The agent as in a target: the blob's bytes, mapped read-execute, called through its entry points. */
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t *file, *text;
static const Elf64_Phdr *load;

static void read_file(void)
{
	int fd = open(DP_AGENT_SO, O_RDONLY | O_CLOEXEC);
	struct stat st;

	cr_assert_geq(fd, 0, "%s", DP_AGENT_SO);
	fstat(fd, &st);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(file, MAP_FAILED);
	close(fd);
}

static void setup(void)
{
	const Elf64_Ehdr *e;
	const Elf64_Phdr *p;

	read_file();
	e = (const Elf64_Ehdr *)file;
	p = (const Elf64_Phdr *)(file + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		load = p[i].p_type == PT_LOAD ? &p[i] : load;
	text = mmap(NULL, load->p_memsz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(text, file + load->p_offset, load->p_filesz);
	mprotect(text, load->p_memsz, PROT_READ | PROT_EXEC);
}

static uint8_t *symbol(const char *name)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(file + e->e_shoff);

	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)(file + s[i].sh_offset);
		const char *names = (const char *)file + s[s[i].sh_link].sh_offset;

		for (size_t k = 0; s[i].sh_type == SHT_SYMTAB && k < s[i].sh_size / sizeof(*sym); k++)
			if (!strcmp(names + sym[k].st_name, name))
				return text + sym[k].st_value;
	}
	cr_assert_fail("no symbol %s", name);
	return NULL;
}

TestSuite(blob, .init = setup);

Test(blob, every_entry_point_is_there)
{
	const char *names[] = {DP_SYM_ACQUIRE, DP_SYM_READ,          DP_SYM_STRING, DP_SYM_BACKTRACE,
	                       DP_SYM_STACKED, DP_SYM_STACKED_APART, DP_SYM_FINISH, DP_SYM_ASK};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cr_expect_lt(symbol(names[i]), text + load->p_filesz);
	cr_expect_eq(load->p_vaddr, 0);
	cr_expect_eq(load->p_memsz, load->p_filesz);
}

/* ---- the thunk: registers in, registers out -------------------------------------------------- */

struct machine {
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
	uint64_t flags;
};

/*
 * Calls `target` with the registers of *in (except rsp) and stores the resulting ones in *out. Uses a painted stack, `shift`
 * bytes below its top, so that the test covers every alignment and sees how much stack is used.
 */
#define STACK_WORDS 1024
#define PAINT       UINT64_C(0x5a5a5a5a5a5a5a5a)
static uint64_t call_stack[STACK_WORDS] __attribute__((aligned(64)));
static struct machine *call_in, *call_out;
static uint64_t call_top, call_sp;
static uint8_t *call_target;

static __attribute__((noinline)) void call_with(const struct machine *in, struct machine *out, uint8_t *target, uint64_t shift)
{
	call_in = (struct machine *)in;
	call_out = out;
	call_target = target;
	call_top = (uintptr_t)(call_stack + STACK_WORDS) - shift;
	for (int i = 0; i < STACK_WORDS; i++)
		call_stack[i] = PAINT;
	__asm__ volatile("pushq %%rbx\n\tpushq %%rbp\n\tpushq %%r12\n\tpushq %%r13\n\tpushq %%r14\n\tpushq %%r15\n\t"
	                 "movq %%rsp, %[sp]\n\t"
	                 "movq %[top], %%rsp\n\t"
	                 "movq %[in], %%rax\n\t"
	                 "pushq 128(%%rax)\n\tpopfq\n\t"
	                 "movq 8(%%rax), %%rcx\n\tmovq 16(%%rax), %%rdx\n\tmovq 24(%%rax), %%rbx\n\tmovq 40(%%rax), %%rbp\n\t"
	                 "movq 48(%%rax), %%rsi\n\tmovq 56(%%rax), %%rdi\n\tmovq 64(%%rax), %%r8\n\tmovq 72(%%rax), %%r9\n\t"
	                 "movq 80(%%rax), %%r10\n\tmovq 88(%%rax), %%r11\n\tmovq 96(%%rax), %%r12\n\tmovq 104(%%rax), %%r13\n\t"
	                 "movq 112(%%rax), %%r14\n\tmovq 120(%%rax), %%r15\n\tmovq 0(%%rax), %%rax\n\t"
	                 "call *%[target]\n\t"
	                 "pushq %%rax\n\tmovq %[out], %%rax\n\tpopq 0(%%rax)\n\t"
	                 "movq %%rcx, 8(%%rax)\n\tmovq %%rdx, 16(%%rax)\n\tmovq %%rbx, 24(%%rax)\n\tmovq %%rsp, 32(%%rax)\n\t"
	                 "movq %%rbp, 40(%%rax)\n\tmovq %%rsi, 48(%%rax)\n\tmovq %%rdi, 56(%%rax)\n\tmovq %%r8, 64(%%rax)\n\t"
	                 "movq %%r9, 72(%%rax)\n\tmovq %%r10, 80(%%rax)\n\tmovq %%r11, 88(%%rax)\n\tmovq %%r12, 96(%%rax)\n\t"
	                 "movq %%r13, 104(%%rax)\n\tmovq %%r14, 112(%%rax)\n\tmovq %%r15, 120(%%rax)\n\tpushfq\n\tpopq "
	                 "128(%%rax)\n\tcld\n\t"
	                 "movq %[sp], %%rsp\n\t"
	                 "popq %%r15\n\tpopq %%r14\n\tpopq %%r13\n\tpopq %%r12\n\tpopq %%rbp\n\tpopq %%rbx\n\t"
	                 : [sp] "=m"(call_sp)
	                 : [in] "m"(call_in), [out] "m"(call_out), [target] "m"(call_target), [top] "m"(call_top)
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

#define DF 0x400u

/* All but rax, rcx, rdx, rsi and the arithmetic flags are unchanged. */
static void expect_preserved(const struct machine *in, const struct machine *out)
{
	const int kept[] = {3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		cr_assert_eq(in->gpr[kept[i]], out->gpr[kept[i]], "register %d", kept[i]);
	cr_assert_eq(in->flags & DF, out->flags & DF);
}

static struct machine acquire(struct dp_debug_ctx *w, bool df, uint64_t shift)
{
	struct machine in = {.flags = 0x202u | (df ? DF : 0)}, out;

	for (int i = 0; i < 16; i++)
		in.gpr[i] = 0x0123456789abcdef * (uint64_t)(i + 1);
	in.gpr[0] = (uintptr_t)&w->desc[0];
	call_with(&in, &out, symbol(DP_SYM_ACQUIRE), shift);
	expect_preserved(&in, &out);
	return out;
}

Test(blob, thunk_returns_record_and_slot_and_keeps_the_rest)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);

	for (uint64_t i = 0; i < 16; i++) {
		struct machine out = acquire(w, i & 1, i * 8 % 64);

		cr_assert_eq(out.gpr[6], (uintptr_t)w->slots);
		cr_assert_eq(out.gpr[1], (uintptr_t)w->rings + 24 + i * 64);
	}
	world_destroy(w);
}

Test(blob, thunk_returns_no_record_when_lost)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_TID);

	while (acquire(w, true, 8).gpr[1])
		;
	cr_expect_eq(w->lost[0].full, 1);
	w->agent->live = 0;
	cr_expect_eq(acquire(w, false, 0).gpr[1], 0);
	cr_expect_eq(w->lost[0].forked, 1);
	world_destroy(w);
}

/* Bytes of the painted stack that the last call used, its return address included. */
static size_t stack_used(void)
{
	size_t i = 0;

	while (i < STACK_WORDS && call_stack[i] == PAINT)
		i++;
	return (STACK_WORDS - i) * sizeof(uint64_t);
}

Test(blob, questions_are_answered_and_keep_the_rest)
{
	_Alignas(struct dp_ask) uint8_t room[sizeof(struct dp_ask) + 8] = {0};
	struct dp_ask *q = (struct dp_ask *)room;
	struct dp_agent *agent = calloc(1, sizeof(*agent));
	struct machine in = {0}, out;

	agent->pid = (uint32_t)getpid();
	q->agent = (uintptr_t)agent;
	q->kind = DP_ASK_GLOB;
	memcpy(q->text, "so*g", 5);
	for (uint64_t i = 0; i < 32; i++) {
		for (int r = 0; r < 16; r++)
			in.gpr[r] = 0x0123456789abcdef * (uint64_t)(r + 1);
		in.gpr[0] = i & 2 ? 8 : (uintptr_t) "something";
		in.gpr[2] = (uintptr_t)q;
		in.flags = 0x202u | (i & 1 ? DF : 0);
		call_with(&in, &out, symbol(DP_SYM_ASK), i);
		expect_preserved(&in, &out);
		cr_assert_eq(in.gpr[6], out.gpr[6]);
		cr_assert_eq(out.gpr[1], !(i & 2));
		cr_assert_eq(out.gpr[0], !(i & 2));
		cr_assert_lt(stack_used(), 512);
	}
	free(agent);
}

/* The longest path: table miss, walk, claim, announcement, wrap. */
Test(blob, thunk_uses_less_than_512_bytes_of_stack)
{
	struct dp_debug_ctx *w = world_create(64, 16384, DP_ID_SELF);
	size_t most = 0;

	for (int i = 0; i < 1000; i++) {
		if (i % 8 == 0)
			memset(w->agent->table, 0, sizeof(w->agent->table));
		if (i % 16 == 0)
			*dp_slot_word(&w->slots[0]) = i % 32 ? dp_slot_pack(5, DP_SLOT_USED) : dp_slot_pack(0, DP_SLOT_DEAD);
		if (i % 64 == 0)
			w->slots[0].tail = w->slots[0].head;
		acquire(w, false, 0);
		most = stack_used() > most ? stack_used() : most;
	}
	cr_expect_lt(most, 512, "%zu bytes", most);
	cr_expect_gt(most, 64, "%zu bytes: nothing was measured", most);
	world_destroy(w);
}

/* The same with a full ring that drops its oldest records, and only the slot of an ended thread. */
Test(blob, flight_recorder_stays_inside_the_thunks_promises)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	size_t most = 0;

	w->control->overwrite = 1;
	for (uint64_t i = 0; i < 3000; i++) {
		struct machine out;

		if (i % 256 == 255) {
			memset(w->agent->table, 0, sizeof(w->agent->table));
			*dp_slot_word(&w->slots[0]) = dp_slot_pack(DP_TID_MASK, DP_SLOT_USED);
			w->slots[0].key = 1;
		}
		out = acquire(w, i & 1, i * 8 % 64);
		cr_assert_neq(out.gpr[1], 0, "hit %lu", i);
		dp_ring_commit((struct dp_record *)out.gpr[1], 64, (uint16_t)(i % WORLD_PROBES));
		most = stack_used() - i * 8 % 64 > most ? stack_used() - i * 8 % 64 : most;
	}
	cr_expect_gt(w->lost[1].overwritten, 100);
	cr_expect_gt(w->control->slots_freed, 10);
	cr_expect_eq(world_lost(w), 0);
	cr_expect_lt(most, 512, "%zu bytes", most);
	world_destroy(w);
}

Test(blob, records_through_the_blob_are_those_of_the_contract)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);
	void (*finish)(struct dp_capture *) = (void (*)(struct dp_capture *))(uintptr_t)symbol(DP_SYM_FINISH);
	void (*read)(struct dp_capture *, const struct dp_op *) =
	        (void (*)(struct dp_capture *, const struct dp_op *))(uintptr_t)symbol(DP_SYM_READ);
	void (*string)(struct dp_capture *, const struct dp_op *, uint64_t) =
	        (void (*)(struct dp_capture *, const struct dp_op *, uint64_t))(uintptr_t)symbol(DP_SYM_STRING);
	uint64_t value = 0x1122334455667788;
	struct dp_op ops[3] = {{(uintptr_t)&value, 8, 0, 0}, {(uintptr_t) "hello", 32, 1, 0}, {0, 32, 2, 0}};
	struct machine out;
	struct dp_capture c;

	w->desc[0].reserve = 128;
	out = acquire(w, false, 0);
	c = (struct dp_capture){
	        .record = (struct dp_record *)out.gpr[1], .slot = (struct dp_slot *)out.gpr[6], .desc = &w->desc[0]};
	c.cursor = c.record->payload + DP_MASK_BYTES;
	read(&c, &ops[0]);
	string(&c, &ops[1], 0);
	string(&c, &ops[2], 0);
	finish(&c);
	cr_expect_eq(c.record->size, 16 + 8 + 8 + 6 + 1 + 1);
	cr_expect_eq(*(uint64_t *)c.record->payload, 4);
	cr_expect_arr_eq(c.record->payload + 8, &value, 8);
	cr_expect_arr_eq(c.record->payload + 16, "hello\0", 7);
	world_destroy(w);
}

/* ---- the unwinder's own stack -----------------------------------------------------------------------------------------------
 */

static struct dp_capture call_helper(const char *helper, struct dp_capture capture)
{
	static const struct dp_op op = {.size = 32};
	static struct dp_regs regs;
	static struct dp_capture c;
	struct machine in = {.flags = 0x202}, out;

	regs.rip = (uintptr_t)call_helper;
	regs.gpr[4] = (uintptr_t)&in;
	c = capture;
	c.regs = &regs;
	in.gpr[7] = (uintptr_t)&c;
	in.gpr[6] = (uintptr_t)&op;
	call_with(&in, &out, symbol(helper), 8);
	cr_assert_eq(out.gpr[3], in.gpr[3]);
	cr_assert_eq(out.gpr[5], in.gpr[5]);
	cr_assert_eq(out.gpr[12], in.gpr[12]);
	return c;
}

static struct dp_capture backtrace_apart(struct dp_debug_ctx *w, struct dp_slot *slot, uint8_t *payload)
{
	return call_helper(DP_SYM_APART, (struct dp_capture){.cursor = payload, .slot = slot, .desc = &w->desc[0]});
}

Test(blob, unwinder_on_its_own_stack_uses_100_bytes_of_the_programs)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP + 64] __attribute__((aligned(64)));
	struct dp_unwind tables = {.magic = DP_UNWIND_MAGIC, .size = sizeof(tables)};
	uint8_t payload[300];

	w->agent->unwind = (uintptr_t)&tables;
	w->slots[0].cache = (uintptr_t)room;
	memset(room, 0x5a, sizeof(room));
	struct dp_capture c = backtrace_apart(w, &w->slots[0], payload);
	cr_expect_eq(c.cursor, payload + 9);
	cr_expect_eq(payload[0], 1);
	cr_expect_leq(stack_used(), 100, "%zu bytes", stack_used());
	cr_expect_neq(room[DP_APART_TOP - 8], 0x5a, "it did not use its own stack");
	cr_expect_eq(room[DP_APART_TOP], 0x5a, "it wrote above its stack");
	cr_expect_eq(w->slots[0].apart, 0, "the stack is not free again");
	world_destroy(w);
}

Test(blob, unwinder_whose_own_stack_is_taken_records_the_site)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP] __attribute__((aligned(64)));
	uint8_t payload[300];

	w->slots[0].cache = (uintptr_t)room;
	w->slots[0].apart = 1; /* as for a hit in a signal handler that interrupted it */
	w->slots[1].cache = 0; /* a probe without tables */
	for (int i = 0; i < 2; i++) {
		struct dp_capture c = backtrace_apart(w, &w->slots[i], payload);
		uint64_t pc;

		memcpy(&pc, payload + 1, 8);
		cr_expect_eq(c.cursor, payload + 9);
		cr_expect_eq(payload[0], 1);
		cr_expect_eq(pc, (uintptr_t)call_helper);
		cr_expect_leq(stack_used(), 100, "%zu bytes", stack_used());
	}
	cr_expect_eq(w->slots[0].apart, 1, "it is still the other hit's");
	world_destroy(w);
}

/* One block of cells, shared by all, with keys by backtrace. */
static void aggregate_by_backtrace(struct dp_debug_ctx *w)
{
	static _Alignas(64) uint64_t memory[4096];

	memset(memory, 0, sizeof(memory));
	w->control->answers =
	        (struct dp_aggs){.head = (uintptr_t)memory, .size = 16384, .keys = 1024, .key_size = 512, .nkeys = 16};
	w->desc[0].stack_words = 33;
}

Test(blob, aggregation_by_backtrace_on_the_unwinders_stack_uses_less_than_the_thunks)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP + 64] __attribute__((aligned(64)));
	struct dp_unwind tables = {.magic = DP_UNWIND_MAGIC, .size = sizeof(tables)};
	uint64_t cells[2] = {0};

	aggregate_by_backtrace(w);
	w->agent->unwind = (uintptr_t)&tables;
	acquire(w, false, 0); /* the slot is this thread's */
	w->slots[0].cache = (uintptr_t)room;
	memset(room, 0x5a, sizeof(room));
	for (uint64_t taken = 0; taken < 2; taken++) {
		w->slots[0].apart = taken;
		call_helper(DP_SYM_STACKED_APART, (struct dp_capture){.record = (void *)cells, .desc = &w->desc[0]});
		cr_assert_neq(cells[0], 0);
		cr_expect_eq(cells[1], 1, "the shared block");
		cr_expect_lt(stack_used(), 512, "%zu bytes", stack_used());
		cr_expect_eq(w->slots[0].apart, taken);
		cr_expect_eq(*(const uint64_t *)(uintptr_t)(cells[0] - 33 * 8), 1);
		cr_expect_eq(*(const uint64_t *)(uintptr_t)(cells[0] - 32 * 8), (uintptr_t)call_helper, "in both cases");
	}
	cr_expect_neq(room[DP_APART_TOP - 8], 0x5a, "it did not use its own stack");
	cr_expect_eq(room[DP_APART_CACHE + 512], 0x5a, "it used %d bytes of its own stack", DP_APART_STACK - 512);
	cr_expect_eq(room[DP_APART_TOP], 0x5a, "it wrote above its stack");
	cr_expect_eq(world_lost(w), 0);
	world_destroy(w);
}

/* ---- under load ------------------------------------------------------------------------------ */

static uint8_t *thunk;
static void (*blob_finish)(struct dp_capture *capture);
static struct dp_debug_ctx *load_world;
static _Thread_local uint64_t *my_recorded;
static uint64_t tried;

static struct dp_reservation through_thunk(const struct dp_probe_desc *desc)
{
	struct dp_reservation r;

	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tcall *%[thunk]\n\tleaq 128(%%rsp), %%rsp"
	                 : "+a"(desc), "=c"(r.record), "=S"(r.slot)
	                 : [thunk] "r"(thunk)
	                 : "rdx", "memory", "cc");
	return r;
}

static void hit_through_blob(unsigned probe, uint64_t value)
{
	__atomic_fetch_add(&tried, 1, __ATOMIC_RELAXED);
	if (world_hit(load_world, probe, &value, sizeof(value)))
		++*my_recorded;
}

static void on_signal(int signo)
{
	(void)signo;
	if (my_recorded)
		hit_through_blob(1, 0);
}

static void *hit_many(void *arg)
{
	my_recorded = arg;
	for (uint64_t i = 1; i <= 20000; i++) {
		hit_through_blob(0, i);
		if (i % 16 == 0)
			raise(SIGUSR1);
	}
	return NULL;
}

/* Every hit takes the blob's slow path: gettid, table, ring. */
Test(blob, threads_with_signals_lose_nothing_uncounted)
{
	enum { N = 4 };
	pthread_t thread[N];
	uint64_t recorded[N] = {0}, sum = 0, drained = 0;

	thunk = symbol(DP_SYM_ACQUIRE);
	blob_finish = (void (*)(struct dp_capture *))(uintptr_t)symbol(DP_SYM_FINISH);
	load_world = world_create(N + 1, 1 << 20, DP_ID_TID);
	load_world->acquire = through_thunk;
	load_world->finish = blob_finish;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < N; i++)
		pthread_create(&thread[i], NULL, hit_many, &recorded[i]);
	for (int i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		sum += recorded[i];
	}
	for (int i = 0; i <= N; i++)
		drained += world_drain(&load_world->slots[i], NULL, NULL);
	cr_expect_eq(drained, sum);
	cr_expect_eq(sum + world_lost(load_world), tried);
	cr_expect_gt(sum, 10000);
	world_destroy(load_world);
}

/* ---- functions that gcc calls -------------------------------------------------------------------- */

Test(blob, memory_functions_are_those_of_the_language)
{
	void *(*copy)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))(uintptr_t)symbol("memcpy");
	void *(*move)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))(uintptr_t)symbol("memmove");
	void *(*set)(void *, int, size_t) = (void *(*)(void *, int, size_t))(uintptr_t)symbol("memset");
	uint8_t a[128], b[128];

	for (size_t n = 0; n < 40; n++) {
		for (size_t from = 0; from < 20; from++) {
			for (size_t to = 0; to < 20; to++) {
				for (size_t i = 0; i < sizeof(a); i++)
					a[i] = b[i] = (uint8_t)i;
				cr_assert_eq(move(a + to, a + from, n), a + to);
				memmove(b + to, b + from, n);
				cr_assert_arr_eq(a, b, sizeof(a), "memmove %zu from %zu to %zu", n, from, to);
				copy(a + 64 + to, a + from, n);
				memcpy(b + 64 + to, b + from, n);
				cr_assert_arr_eq(a, b, sizeof(a), "memcpy %zu from %zu to %zu", n, from, to);
			}
			set(a + from, 0x1a5, n);
			memset(b + from, 0x1a5, n);
			cr_assert_arr_eq(a, b, sizeof(a), "memset %zu at %zu", n, from);
		}
	}
}
