/* SPDX-License-Identifier: MIT */
/* Small functions with a system call in them, as bytes. */
#ifndef DP_TESTS_TRAMPOLINE_HELPER_CALLS_H
#define DP_TESTS_TRAMPOLINE_HELPER_CALLS_H

#include "tests/unit/trampoline/helper_text.h"

#define AT          UINT64_C(0x400000)
#define MOV_EAX(nr) 0xb8, (nr)&0xff, (nr) >> 8, 0, 0
#define SYSCALL     0x0f, 0x05
#define RET         0xc3

/* What `kind` (a function, and the structure that it fills) reports about the system call at offset `call` of n bytes at AT. */
#define PLACE_IN(kind, code, n, call)                                                                                            \
	({                                                                                                                       \
		struct helper_module m_;                                                                                         \
		struct kind place_;                                                                                              \
		helper_code(&m_, AT, code, n);                                                                                   \
		struct dp_error *err_ = kind(&m_.text, AT + (call), &place_);                                                    \
		cr_assert_null(err_, "%s", err_ ? err_->message : "");                                                           \
		place_;                                                                                                          \
	})
/* The same for the bytes that follow. */
#define PLACE_OF(kind, call, ...)                                                                                                \
	({                                                                                                                       \
		const uint8_t code_[] = {__VA_ARGS__};                                                                           \
		PLACE_IN(kind, code_, sizeof(code_), call);                                                                      \
	})

#endif
