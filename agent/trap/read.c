/* SPDX-License-Identifier: MIT */
/*
 * Reads memory that an expression names: any address. While the agent's fault handler is installed, plain loads are used, and a
 * fault shows what is unmapped. Otherwise process_vm_readv on the process itself copies what is mapped: a system call.
 */
#include "agent/trap/trap_agent.h"

#define PAGE 4096u

int dp_self_read(const struct dp_agent *agent, void *dst, uint64_t src, uint32_t n)
{
	if (dp_faults_are_ours(dp_trap_state()))
		return dp_fault_copy((uint64_t)(uintptr_t)dst, src, n) == n ? 0 : -1;

	struct dp_iovec local = {(uint64_t)(uintptr_t)dst, n};
	struct dp_iovec remote = {src, n};
	uint32_t pid = DP_LOAD(&agent->pid);

	if (!pid) /* a fork child. Not stored: a handler may fork before that, and its child would have our pid */
		pid = (uint32_t)dp_syscall0(DP_SYS_GETPID);
	return dp_syscall_vm_read(pid, &local, &remote) == (int64_t)n ? 0 : -1;
}

static const struct dp_agent *agent_of(const struct dp_capture *capture)
{
	return (const struct dp_agent *)(uintptr_t)capture->desc->agent;
}

/* The payload's first word, see DP_MASK_BYTES. Payloads have alignment 1, but records start 8-byte aligned. */
static void mark_unreadable(struct dp_capture *capture, const struct dp_op *op)
{
	*(uint64_t *)(void *)capture->record->payload |= UINT64_C(1) << op->field;
}

void dp_agent_read(struct dp_capture *capture, const struct dp_op *op)
{
	if (dp_self_read(agent_of(capture), capture->cursor, op->addr, op->size)) {
		memset(capture->cursor, 0, op->size);
		mark_unreadable(capture, op);
	}
	capture->cursor += op->size;
}

/* Length of the string at dst, or n if there is no NUL in n bytes. */
static uint32_t length(const uint8_t *dst, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && dst[i])
		i++;
	return i;
}

/*
 * Reads up to `limit` bytes, and no page after the one with the NUL. Returns the bytes before the NUL, `limit` if there was none,
 * or -1 if the string runs into unreadable memory.
 */
static int64_t read_string(const struct dp_agent *agent, uint8_t *dst, uint64_t addr, uint32_t limit, uint32_t *written)
{
	uint32_t n = 0;

	while (n < limit) {
		uint32_t chunk = PAGE - (uint32_t)((addr + n) & (PAGE - 1)), found;

		if (chunk > limit - n)
			chunk = limit - n;
		*written = n + chunk;
		if (dp_self_read(agent, dst + n, addr + n, chunk))
			return -1;
		found = length(dst + n, chunk);
		n += found;
		if (found < chunk)
			return n;
	}
	return n;
}

int64_t dp_self_text(const struct dp_agent *agent, uint8_t *dst, const struct dp_op *op, uint64_t count, uint32_t *written)
{
	const uint32_t limit = op->size, most = (uint32_t)dp_counted((enum dp_count)op->count, count, limit);
	int64_t n;

	*written = 0;
	if (!op->addr && most && op->count != DP_COUNT_ARRAY)
		return DP_SELF_NULL;
	n = read_string(agent, dst, op->addr, most, written);
	if (n == limit) { /* no NUL: cut */
		n = limit - 1;
		for (uint32_t i = 1; i <= 3 && i <= n; i++)
			dst[n - i] = '.';
	}
	return n;
}

/* In place of a string whose pointer is NULL. Returns the bytes before the NUL. */
static int64_t put_null(const struct dp_capture *capture, const struct dp_op *op)
{
	uint32_t n = 0;

	for (; n + 1 < op->size && DP_NULL_TEXT[n]; n++)
		capture->cursor[n] = (uint8_t)DP_NULL_TEXT[n];
	return n;
}

void dp_agent_string(struct dp_capture *capture, const struct dp_op *op, uint64_t count)
{
	uint32_t written, keep;
	int64_t n;

	if (!op->size)
		return;
	n = dp_self_text(agent_of(capture), capture->cursor, op, count, &written);
	if (n < 0) {
		mark_unreadable(capture, op);
		n = n == DP_SELF_NULL ? put_null(capture, op) : 0;
	}
	keep = (uint32_t)n + 1;
	capture->cursor[n] = 0;
	/* Bytes given back to the ring must be zero. */
	if (written > keep)
		memset(capture->cursor + keep, 0, written - keep);
	capture->cursor += keep;
}
