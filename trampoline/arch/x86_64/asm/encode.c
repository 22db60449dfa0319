/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/asm/encode.h"

/* Little-endian, like the host: this folder is only built on the architecture for which it generates code. */
void dp_put_u8(struct dp_buf *out, uint8_t v)
{
	dp_buf_put(out, &v, sizeof(v));
}

void dp_put_u32(struct dp_buf *out, uint32_t v)
{
	dp_buf_put(out, &v, sizeof(v));
}

void dp_put_u64(struct dp_buf *out, uint64_t v)
{
	dp_buf_put(out, &v, sizeof(v));
}

bool dp_reaches(uint64_t end, uint64_t target)
{
	int64_t distance = (int64_t)(target - end);
	return distance >= INT32_MIN && distance <= INT32_MAX;
}

uint8_t dp_jmp_size(uint64_t at, uint64_t target)
{
	return dp_reaches(at + DP_JMP_NEAR, target) ? DP_JMP_NEAR : DP_JMP_FAR;
}

void dp_put_jmp(struct dp_buf *out, uint64_t at, uint64_t target)
{
	if (dp_reaches(at + DP_JMP_NEAR, target)) {
		dp_put_u8(out, 0xe9); /* jmp target */
		dp_put_u32(out, (uint32_t)(target - (at + DP_JMP_NEAR)));
		return;
	}
	dp_put_u8(out, 0xff); /* jmp *0(%rip) */
	dp_put_u8(out, 0x25);
	dp_put_u32(out, 0);
	dp_put_u64(out, target);
}

void dp_put_push(struct dp_buf *out, uint64_t value)
{
	dp_put_u8(out, 0x68); /* push $low half, sign-extended */
	dp_put_u32(out, (uint32_t)value);
	if (value == (uint64_t)(int64_t)(int32_t)value)
		return;
	dp_put_u32(out, 0x042444c7); /* movl $high half, 4(%rsp) */
	dp_put_u32(out, (uint32_t)(value >> 32));
}

void dp_put_load_rcx(struct dp_buf *out, uint64_t at, uint64_t value)
{
	const uint8_t lea[] = {0x48, 0x8d, 0x0d}, movabs[] = {0x48, 0xb9};
	if (dp_reaches(at + sizeof(lea) + 4, value)) {
		dp_buf_put(out, lea, sizeof(lea)); /* lea value(%rip), %rcx */
		dp_put_u32(out, (uint32_t)(value - (at + sizeof(lea) + 4)));
		return;
	}
	dp_buf_put(out, movabs, sizeof(movabs)); /* movabs $value, %rcx */
	dp_put_u64(out, value);
}
