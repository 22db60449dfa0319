/* SPDX-License-Identifier: MIT */
/* asm_forms [ROUNDS]: calls every function of asm_forms.S with the same inputs and prints a checksum of the results of each. */
#include "target.h"

typedef long form_fn(long);
long with_registers(form_fn *form, long arg, long rax, long rcx);
extern long pid;

#define FORMS(X)                                                                                                                 \
	X(lea_rip)                                                                                                               \
	X(mov_rip)                                                                                                               \
	X(cmp_rip_imm)                                                                                                           \
	X(short_jcc) X(jcc_first) X(jmp_short) X(jmp_near) X(call_first) X(call_indirect) X(tail_jmp_indirect) X(jrcxz)          \
	        X(jrcxz_first) X(loop) X(loop_first) X(ret_only) X(endbr) X(endbr_push) X(syscall_mid) X(syscall_first)          \
	                X(rep_movsb) X(nop5) X(push) X(push_imm8) X(redzone) X(flags) X(xchg_self) X(lock_add) X(vex) X(vex_rip) \
	                        X(pushf) X(stack_relative) X(inner_target) X(tiny) X(tiny2)

#define DECLARE(name) form_fn form_##name;
FORMS(DECLARE)

static const struct {
	const char *name;
	form_fn *form;
} forms[] = {
#define ROW(name) {#name, form_##name},
        FORMS(ROW)
#undef ROW
};

static uint64_t checksum(form_fn *form)
{
	uint64_t sum = 0;
	for (long arg = -3; arg <= 3; arg++)
		for (long rcx = 0; rcx <= 2; rcx++)
			sum = sum * 1000003 + (uint64_t)with_registers(form, arg * 0x123456789L, 39, rcx);
	return sum;
}

int main(int argc, char **argv)
{
	enum { N = sizeof forms / sizeof forms[0] };
	static uint64_t first[N];
	long rounds = target_number(argc, argv, 1, 0), bad = 0;

	pid = getpid();
	target_stop_on_term();
	for (int i = 0; i < N; i++)
		first[i] = checksum(forms[i].form);
	target_ready();
	for (long r = 0; !target_stop && (rounds == 0 || r < rounds); r++) {
		for (int i = 0; i < N; i++)
			bad += checksum(forms[i].form) != first[i];
		target_sleep_us(1000);
	}
	for (int i = 0; i < N; i++)
		printf("%-18s %016lx\n", forms[i].name, (unsigned long)checksum(forms[i].form));
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
