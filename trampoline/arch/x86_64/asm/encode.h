/* SPDX-License-Identifier: MIT */
/*
 * The few instructions that relocation and springboards need. They change no flag and, but for the load of rcx, no general
 * register.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_ASM_ENCODE_H
#define DP_TRAMPOLINE_ARCH_X86_64_ASM_ENCODE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_JMP_NEAR 5  /* e9 rel32 */
#define DP_JMP_FAR  14 /* jmp *0(%rip), followed by the address */
#define DP_INT3     0xcc

void dp_put_u8(struct dp_buf *out, uint8_t v);
void dp_put_u32(struct dp_buf *out, uint32_t v);
void dp_put_u64(struct dp_buf *out, uint64_t v);

/* Whether an instruction that ends at `end` can reach `target` by a signed 32-bit displacement. */
bool dp_reaches(uint64_t end, uint64_t target);
/* Size of dp_put_jmp()'s result. */
uint8_t dp_jmp_size(uint64_t at, uint64_t target);
/* A jump at address `at`: near if it reaches, else through a quadword after it. */
void dp_put_jmp(struct dp_buf *out, uint64_t at, uint64_t target);
/* Pushes a 64-bit constant. */
void dp_put_push(struct dp_buf *out, uint64_t value);
/* Loads a constant into rcx; `at` is the instruction's address. */
void dp_put_load_rcx(struct dp_buf *out, uint64_t at, uint64_t value);

#endif
