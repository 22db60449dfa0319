/* SPDX-License-Identifier: MIT */
#include "helper_stopped.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int zero;
static char *volatile nowhere;

static struct stopped s;

static struct dp_snap_thread *run(void (*child)(void))
{
	return stopped_run(&s, child, NULL);
}

#define IS(word)     cr_assert(stopped_is_classified(s.snapshot, word), "not classified as %s: %s", word, t->fault_reason)
#define IS_NOT(word) cr_assert(!stopped_is_classified(s.snapshot, word), "classified as %s", word)
#define SAYS(part)   cr_assert(t->fault_reason &&strstr(t->fault_reason, part), "no '%s' in: %s", part, t->fault_reason)

static void read_null(void)
{
	zero = ((volatile int *)nowhere)[3];
}

Test(fault, a_null_pointer_is_read)
{
	struct dp_snap_thread *t = run(read_null);
	IS("segv");
	IS("null");
	IS("read");
	IS_NOT("write");
	SAYS("read of 4 bytes at 0xc: a null pointer (r");
	cr_assert_str_eq(t->frames->siginfo->name, "SIGSEGV");
	cr_assert(t->frames->instruction && strstr(t->frames->instruction, "mov"));
	stopped_fini(&s);
}

static void write_readonly(void)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile uint64_t *)(p + 16) = 1;
}

Test(fault, memory_that_may_only_be_read_is_written)
{
	struct dp_snap_thread *t = run(write_readonly);
	IS("segv");
	IS("write");
	IS_NOT("null");
	SAYS("write of 8 bytes at 0x");
	SAYS("without that permission");
	stopped_fini(&s);
}

static void write_one_byte(void)
{
	*(volatile char *)nowhere = 1;
}

Test(fault, one_byte_is_no_bytes)
{
	struct dp_snap_thread *t = run(write_one_byte);
	IS("write");
	SAYS("write of 1 byte at 0x0");
	stopped_fini(&s);
}

static void call_null(void)
{
	zero = ((int (*volatile)(void))nowhere)() + 1;
}

Test(fault, a_null_pointer_is_called_and_its_caller_is_found)
{
	struct dp_snap_thread *t = run(call_null);
	IS("exec");
	IS("null");
	IS_NOT("read");
	cr_assert(stopped_frame(t, "call_null"));
	stopped_fini(&s);
}

static void jump_data(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	((void (*volatile)(void))p)();
}

Test(fault, data_is_executed)
{
	struct dp_snap_thread *t = run(jump_data);
	IS("exec");
	IS_NOT("null");
	SAYS("is not executable");
	stopped_fini(&s);
}

static int recurse(volatile char *p)
{
	volatile char big[512];
	big[0] = p ? *p : 1;
	return (zero ? 0 : recurse(big)) + big[0];
}

static void overflow(void)
{
	zero = recurse(NULL) + 1;
}

Test(fault, a_stack_that_has_overflowed_is_cut_in_the_middle)
{
	struct dp_snap_thread *t = run(overflow);
	IS("segv");
	IS("stack-overflow");
	IS("truncated");
	cr_assert(t->nframes >= 384 && t->nframes <= 520, "%u frames", t->nframes);
	cr_assert(t->more_frames > 100);
	cr_assert(stopped_frame(t, "overflow"), "the outermost frames are kept");
	stopped_fini(&s);
}

static void divide(void)
{
	zero = 7 / zero;
}

Test(fault, a_division_by_zero_names_the_divisor)
{
	struct dp_snap_thread *t = run(divide);
	IS("fpe");
	SAYS("division");
	stopped_fini(&s);
}

static void divide_too_large(void)
{
	__asm__ volatile("mov $0x80000000, %%eax; cltd; mov $-1, %%ecx; idivl %%ecx" ::: "rax", "rcx", "rdx");
}

Test(fault, a_quotient_that_does_not_fit_is_no_division_by_zero)
{
	struct dp_snap_thread *t = run(divide_too_large);
	IS("fpe");
	SAYS("whose quotient overflows; the divisor is not zero (ecx)");
	stopped_fini(&s);
}

static void divide_by_memory(void)
{
	__asm__ volatile("xor %%edx, %%edx; mov $7, %%eax; movq %0, %%rcx; divl (%%rcx)" ::"r"(&zero)
	                 : "rax", "rcx", "rdx", "memory");
}

Test(fault, a_register_that_says_where_the_divisor_is_was_not_zero)
{
	struct dp_snap_thread *t = run(divide_by_memory);
	IS("fpe");
	SAYS("integer division by zero");
	cr_assert(!strstr(t->fault_reason, "overflows"), "%s", t->fault_reason);
	cr_assert(!strstr(t->fault_reason, "(rcx)"), "%s", t->fault_reason);
	stopped_fini(&s);
}

/* Named as in the C++ runtime. */
__attribute__((noinline)) static void terminate(void) __asm__("_ZSt9terminatev");
__attribute__((noinline)) static void terminate(void)
{
	abort();
}

__attribute__((noinline)) static void throw_uncaught(void) __asm__("__cxa_throw");
__attribute__((noinline)) static void throw_uncaught(void)
{
	terminate();
	zero++;
}

static void throw(void)
{
	throw_uncaught();
	zero++;
}

Test(fault, an_exception_that_nothing_catches)
{
	struct dp_snap_thread *t = run(throw);
	IS("abort");
	IS("exception");
	SAYS("uncaught C++ exception");
	stopped_fini(&s);
}

static void misaligned(void)
{
	static _Alignas(16) char bytes[32];
	__asm__ volatile("movaps %%xmm0, (%0)" ::"r"(bytes + 1) : "memory");
}

Test(fault, a_vector_that_is_not_aligned_is_no_null_pointer)
{
	struct dp_snap_thread *t = run(misaligned);
	IS("align");
	IS("write");
	IS_NOT("null");
	SAYS("aligned");
	stopped_fini(&s);
}

static void read_far(void)
{
	__asm__ volatile("movabs $0xdead000000001000, %%rax; mov 16(%%rax), %%ecx" ::: "rax", "rcx");
}

Test(fault, an_address_that_no_program_has_names_its_register)
{
	struct dp_snap_thread *t = run(read_far);
	IS("read");
	IS_NOT("null");
	SAYS("read of 4 bytes at 0xdead000000001010: not an address of a program (rax)");
	stopped_fini(&s);
}

static void index_far(void)
{
	__asm__ volatile("movabs $0xdead00000000, %%rax; xor %%ecx, %%ecx; movb $1, (%%rcx,%%rax,2)" ::: "rax", "rcx", "memory");
}

Test(fault, an_index_that_leads_nowhere_is_named)
{
	struct dp_snap_thread *t = run(index_far);
	IS("write");
	SAYS("write of 1 byte at 0x1bd5a00000000: not an address of a program (rax)");
	stopped_fini(&s);
}

static void jump_far(void)
{
	__asm__ volatile("movabs $0xdead000000001000, %%rax; jmp *%%rax" ::: "rax");
}

Test(fault, a_jump_to_no_address_is_no_read)
{
	struct dp_snap_thread *t = run(jump_far);
	IS("exec");
	IS_NOT("read");
	SAYS("execution at 0xdead000000001000: not an address of a program (rax)");
	stopped_fini(&s);
}

static void return_far(void)
{
	__asm__ volatile("movabs $0xdead000000001000, %%rax; push %%rax; ret" ::: "rax", "memory");
}

Test(fault, a_return_to_no_address_is_not_the_stack_that_cannot_be_read)
{
	struct dp_snap_thread *t = run(return_far);
	IS("exec");
	IS_NOT("read");
	SAYS("execution at 0xdead000000001000: not an address of a program");
	stopped_fini(&s);
}

static void return_nowhere(void)
{
	__asm__ volatile("movabs $0x123456789000, %%rsp; ret" ::: "memory");
}

Test(fault, a_return_without_a_stack_reads_it)
{
	struct dp_snap_thread *t = run(return_nowhere);
	IS("read");
	SAYS("read of 8 bytes at 0x123456789000: nothing is mapped there (rsp)");
	stopped_fini(&s);
}

static void push_null(void)
{
	__asm__ volatile("xor %%ebx, %%ebx; pushq 0x10(%%rbx)" ::: "rbx", "memory");
}

Test(fault, what_is_pushed_is_read)
{
	struct dp_snap_thread *t = run(push_null);
	IS("read");
	IS_NOT("write");
	SAYS("read of 8 bytes at 0x10: a null pointer (rbx)");
	stopped_fini(&s);
}

static void store_state(void)
{
	static _Alignas(64) char bytes[1024];
	__asm__ volatile("fxsave64 (%0)" ::"r"(bytes + 8) : "memory");
}

Test(fault, the_state_of_the_processor_is_aligned_too)
{
	struct dp_snap_thread *t = run(store_state);
	IS("align");
	SAYS("write of 512 bytes at 0x");
	SAYS("not aligned to 16 bytes");
	stopped_fini(&s);
}

static void cross_page(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + 4096, 4096);
	__asm__ volatile("movq %0, %%rbx; movq (%%rbx), %%rax" ::"r"(p + 4092) : "rax", "rbx", "memory");
}

Test(fault, an_access_over_the_end_of_its_page_says_where_it_begins_and_what_is_missing)
{
	struct dp_snap_thread *t = run(cross_page);
	IS("read");
	SAYS("read of 8 bytes at 0x");
	SAYS("ffc: nothing is mapped at 0x");
	SAYS("000 (rbx)");
	stopped_fini(&s);
}

static void run_out_of_page(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p + 4094, "\x48\x8b", 2);
	munmap(p + 4096, 4096);
	((void (*volatile)(void))(p + 4094))();
}

Test(fault, an_instruction_whose_end_is_not_mapped_is_execution)
{
	struct dp_snap_thread *t = run(run_out_of_page);
	IS("exec");
	IS_NOT("read");
	SAYS("000: nothing is mapped there");
	stopped_fini(&s);
}

static void halt(void)
{
	__asm__ volatile("hlt");
}

Test(fault, what_only_the_kernel_may_do_is_no_access)
{
	struct dp_snap_thread *t = run(halt);
	IS("segv");
	IS_NOT("null");
	IS_NOT("read");
	SAYS("hlt: an instruction that a program may not execute");
	stopped_fini(&s);
}

static void breakpoint(void)
{
	__asm__ volatile("int3");
}

Test(fault, a_breakpoint_is_no_single_step)
{
	struct dp_snap_thread *t = run(breakpoint);
	IS("trap");
	cr_assert_str_eq(t->fault_reason, "a breakpoint instruction");
	stopped_fini(&s);
}

extern void __assert_fail(const char *text, const char *file, unsigned line, const char *function);

static void fail_assertion(void)
{
	__assert_fail("zero == 1", "file.c", 77, "here");
}

Test(fault, an_assertion_says_its_text)
{
	struct dp_snap_thread *t = run(fail_assertion);
	IS("abort");
	IS("assert");
	SAYS("zero == 1");
	stopped_fini(&s);
}

extern void __stack_chk_fail(void);

Test(fault, a_smashed_stack_is_not_fortification)
{
	struct dp_snap_thread *t = run(__stack_chk_fail);
	IS("abort");
	IS("stack-smash");
	IS_NOT("fortify");
	IS_NOT("assert");
	stopped_fini(&s);
}

static void illegal(void)
{
	__asm__ volatile("ud2");
}

Test(fault, an_unknown_instruction)
{
	struct dp_snap_thread *t = run(illegal);
	IS("ill");
	SAYS("should be unreachable");
	cr_assert(t->frames->instruction && strstr(t->frames->instruction, "ud2"));
	stopped_fini(&s);
}

static void bus(void)
{
	FILE *f = tmpfile();
	volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
	zero = p[5];
}

Test(fault, behind_the_end_of_a_file)
{
	struct dp_snap_thread *t = run(bus);
	IS("bus");
	IS("read");
	stopped_fini(&s);
}

static void kill_self(void)
{
	raise(SIGSEGV);
}

Test(fault, a_signal_that_was_sent_is_no_fault_of_the_instruction)
{
	struct dp_snap_thread *t = run(kill_self);
	IS("segv");
	IS_NOT("null");
	IS_NOT("read");
	cr_assert(t->frames->siginfo->by_kill);
	cr_assert_eq(t->frames->siginfo->pid, s.pid);
	stopped_fini(&s);
}
