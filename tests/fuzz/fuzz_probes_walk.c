/* SPDX-License-Identifier: MIT */
/*
 * Any registers, stack and tables: the agent's walker ends within its limit, and reads directly only memory that it has found
 * readable. The input: one byte of options, the registers, the stack, then .eh_frame, or the rows and indices themselves.
 */
#include <stdint.h>

static uint64_t load_word(uint64_t addr);
#define DP_UNWIND_LOAD load_word
#define dp_self_read   fuzz_self_read
#include "agent/unwind/unwind.c"
#include "agent/unwind/unwind_lookup.c"
#include "agent/unwind/unwind_memo.c"
#include "agent/unwind/unwind_stack.c"
#include "agent/unwind/unwind_step.c"

#include "probes/unwind/unwind_cfi.h"

#include <stdlib.h>
#include <string.h>

#define STACK 0x7000u /* the addresses that programs see; [STACK, STACK + 4 pages) is mapped */
#define PAGES 4u
#define CODE  0x400000u
#define BLOCK (1u << 20)

static uint8_t stack[PAGES * 4096];
static uint8_t seen_pages[PAGES]; /* read by fuzz_self_read in full or in part */
static uint64_t block[BLOCK / 8], cache[DP_UNWIND_CACHE], memo[DP_UNWIND_MEMO / 8];

int fuzz_self_read(const struct dp_agent *agent, void *dst, uint64_t src, uint32_t n);
int fuzz_self_read(const struct dp_agent *agent, void *dst, uint64_t src, uint32_t n)
{
	uint64_t at = src - STACK;

	(void)agent;
	if (at >= sizeof(stack) || n > sizeof(stack) - at)
		return -1;
	memcpy(dst, stack + at, n);
	seen_pages[at / 4096] = 1;
	return 0;
}

static uint64_t load_word(uint64_t addr)
{
	uint64_t at = addr - STACK, word;

	if (at > sizeof(stack) - 8 || !seen_pages[at / 4096] || !seen_pages[(at + 7) / 4096])
		abort();
	memcpy(&word, stack + at, 8);
	return word;
}

static size_t take_bytes(const uint8_t **data, size_t *size, void *to, size_t n)
{
	if (n > *size)
		n = *size;
	if (n)
		memcpy(to, *data, n);
	*data += n;
	*size -= n;
	return n;
}

/* A block of one range, from arbitrary rows. */
static void build(const struct dp_unwind_rows *rows)
{
	struct dp_unwind *head = (struct dp_unwind *)block;
	struct dp_unwind_range *range = (struct dp_unwind_range *)(head + 1);
	uint8_t *at = (uint8_t *)(range + 1);

	*head = (struct dp_unwind){
	        .magic = DP_UNWIND_MAGIC, .size = sizeof(block), .generation = 1, .tracked = 0xff, .nranges = 1};
	head->ranges_offset = (uint32_t)sizeof(*head);
	head->rows_offset = (uint32_t)(at - (uint8_t *)block);
	head->nrows = (uint32_t)rows->nrules;
	memcpy(at, rows->rule, rows->nrules * sizeof(*rows->rule));
	at += rows->nrules * sizeof(*rows->rule);
	*range = (struct dp_unwind_range){CODE, CODE + (1u << 20), (uint32_t)rows->n, (uint32_t)(at - (uint8_t *)block), 0, 0};
	memcpy(at, rows->pc, rows->n * sizeof(*rows->pc));
	at += (rows->n * sizeof(*rows->pc) + 7) & ~(size_t)7;
	range->row_offset = (uint32_t)(at - (uint8_t *)block);
	memcpy(at, rows->row, rows->n * sizeof(*rows->row));
}

static void from_eh_frame(const uint8_t *data, size_t size)
{
	const struct dp_cfi_section section = {0x10000, data, size};
	struct dp_unwind_rows rows;

	dp_unwind_rows_init(&rows);
	if (dp_cfi_compile(&section, 0x8000, 0x8000 + (1u << 20), &rows) && rows.n && rows.n < 20000 && rows.nrules < 10000)
		build(&rows);
	dp_unwind_rows_fini(&rows);
}

/* Sixteen rules, each a row of arbitrary bytes; then indices. */
static void from_rows(const uint8_t *data, size_t size)
{
	struct dp_unwind_row rule[16] = {{0}};
	uint32_t pc[64];
	uint16_t row[64] = {0};
	struct dp_unwind_rows rows = {.pc = pc, .row = row, .n = 64, .rule = rule, .nrules = 16};

	take_bytes(&data, &size, rule, sizeof(rule));
	take_bytes(&data, &size, row, sizeof(row));
	for (uint32_t i = 0; i < 64; i++)
		pc[i] = i * 16;
	build(&rows);
}

static void walk_some(uint8_t how, const struct dp_regs *regs)
{
	static struct dp_agent agent;
	static struct dp_probe_desc desc;
	static uint8_t payload[1 + 8 * DP_BACKTRACE_MAX];
	struct dp_slot slot = {.cache = how & 2 ? (uint64_t)cache : 0, .memo = how & 2 ? (uint64_t)memo : 0};
	struct dp_op op = {.size = how >> 2 ? how >> 1 : DP_BACKTRACE_MAX};

	agent.unwind = (uint64_t)block;
	desc.agent = (uint64_t)&agent;
	memset(cache, 0, sizeof(cache));
	memset(memo, 0, sizeof(memo));
	for (int i = 0; i < 3; i++) {
		struct dp_capture capture = {.cursor = payload, .slot = &slot, .desc = &desc, .regs = regs};

		dp_agent_backtrace(&capture, &op);
		if (payload[0] > op.size || capture.cursor != payload + 1 + 8 * payload[0])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_regs regs = {0};
	uint16_t words = 0;
	uint8_t how = 0;

	memset(block, 0, sizeof(block));
	memset(stack, 0, sizeof(stack));
	memset(seen_pages, 0, sizeof(seen_pages));
	take_bytes(&data, &size, &how, 1);
	take_bytes(&data, &size, &regs, sizeof(regs));
	take_bytes(&data, &size, &words, sizeof(words));
	for (size_t at = 0, n = words % 1024; n; n--, at += 8)
		take_bytes(&data, &size, stack + at, 8);
	/* Mostly within the mapped stack and code. */
	if (how & 0x80) {
		regs.gpr[4] = STACK + regs.gpr[4] % sizeof(stack);
		regs.gpr[5] = STACK + regs.gpr[5] % sizeof(stack);
		regs.rip = CODE + regs.rip % (1u << 10);
	}
	if (how & 1)
		from_eh_frame(data, size);
	else
		from_rows(data, size);
	walk_some(how & 0x7f, &regs);
	return 0;
}
