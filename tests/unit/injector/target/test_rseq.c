/* SPDX-License-Identifier: MIT */
/* A thread borrowed in a restartable sequence does not resume in the middle of it. */
#include "helper_tracee.h"

#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const char rs_begin[], rs_finish[], rs_handler[];

/* A sequence that never ends: only its abort handler leaves it, counts, and starts again. */
static void sequence(void)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	tr->ready = 1;
	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n.balign 32\n"
	                 "rs_descriptor: .long 0, 0\n.quad rs_begin, rs_finish - rs_begin, rs_handler\n.popsection\n"
	                 ".globl rs_begin, rs_finish, rs_handler\n"
	                 "1: lea rs_descriptor(%%rip), %%rax\n mov %%rax, %[sequence]\n"
	                 "rs_begin: pause\n jmp rs_begin\n"
	                 "rs_finish: .long %c[signature]\n"
	                 "rs_handler: incq %[calls]\n jmp 1b\n"
	                 : [calls] "+m"(tr->calls), [sequence] "=m"(area->rseq_cs)
	                 : [signature] "i"(RSEQ_SIG)
	                 : "rax", "cc", "memory");
}

Test(rseq, a_borrowed_thread_begins_its_sequence_anew)
{
	pid_t pid = tr_spawn(sequence);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 50; i++) {
		struct dp_borrow *b;
		cr_assert(tr_await_value(&tr->calls, tr->calls + 1), "after %d: the kernel does not report the sequence any more",
		          i);
		tr_ok(dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b));
		cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		tr_ok(dp_borrow_end(b, NULL));
	}
	tr_kill(pid);
}

/* What dynprobe reads where the kernel does not report the sequence. */
Test(rseq, a_module_describes_its_sequences)
{
	pid_t pid = tr_spawn(sequence);
	struct dp_process p = tr_process(pid);
	cr_expect_eq(dp_rseq_of_file(&p, (uint64_t)(uintptr_t)rs_begin), (uint64_t)(uintptr_t)rs_handler);
	cr_expect_eq(dp_rseq_of_file(&p, (uint64_t)(uintptr_t)rs_finish), 0);
	cr_expect_eq(dp_rseq_of_file(&p, (uint64_t)(uintptr_t)getpid), 0);
	cr_expect_eq(dp_rseq_of_file(&p, 0), 0);
	tr_kill(pid);
}
