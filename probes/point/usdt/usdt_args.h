/* SPDX-License-Identifier: MIT */
/* An argument of a USDT marker, from its operand string: `-4@%eax`, `8@-16(%rbp)`, `-8@(%rax,%rbx,4)`, `4@$5`, `8@foo(%rip)`. */
#ifndef DP_PROBES_POINT_USDT_USDT_ARGS_H
#define DP_PROBES_POINT_USDT_USDT_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum dp_usdt_kind {
	DP_USDT_CONST,  /* disp */
	DP_USDT_REG,    /* base, shift (8 for ah), size */
	DP_USDT_MEMORY, /* size bytes at disp + base + index * scale */
};
#define DP_USDT_NO_REG 0xffu
struct dp_usdt_arg {
	enum dp_usdt_kind kind;
	uint8_t size; /* bytes: 1, 2, 4, 8 */
	bool is_signed, is_float;
	bool xmm; /* DP_USDT_REG: `base` is a vector register */
	uint8_t base, index, scale, shift;
	int64_t disp; /* symbols and rip are resolved to target addresses */
};

#endif
