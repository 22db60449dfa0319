/* SPDX-License-Identifier: MIT */
/* A hook on a system call: either we or the program make the call, never both, and no other register, flag or red zone changes.
 */
#include "tests/unit/trampoline/helper_text.h"

#include "trampoline/arch/x86_64/hooks/hook_syscall.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STUB = 0x1000, MADE = 77 };

static struct {
	unsigned calls;
	bool make;
	struct dp_regs seen;
} hook;

/* Called as C; destroys all that it may. */
uint64_t hook_entry(struct dp_regs *r);
uint64_t hook_entry(struct dp_regs *r)
{
	hook.calls++;
	hook.seen = *r;
	if (hook.make)
		r->gpr[0] = MADE;
	__asm__ volatile("" ::: "memory");
	return hook.make;
}

/* long run(code, nr, arg): rdi = nr, rsi = arg at the code's start; all callee-saved registers and a word of the red zone are
 * checked. */
long run_code(const void *code, long nr, long arg, uint64_t *bad);
__asm__(".pushsection .text\nrun_code:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rcx\n"
        "	mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi\n"
        "	mov $0x1111,%ebx; mov $0x2222,%ebp; mov $0x3333,%r12d; mov $0x4444,%r13d; mov $0x5555,%r14d; mov $0x6666,%r15d\n"
        "	mov $0x7777,%edx; mov $0x8888,%r8d; mov $0x9999,%r9d; mov $0xaaaa,%r10d\n"
        "	movq $0xbbbb,-24(%rsp); stc; std\n"
        "	call *%rax\n"
        "	setnc %cl; pushfq; shrq $10,(%rsp); popq %r11; cld; notl %r11d; andl $1,%r11d; orb %r11b,%cl\n"
        "	movzbl %cl,%ecx\n"
        "	sub $0x1111,%rbx; or %rbx,%rcx; sub $0x2222,%rbp; or %rbp,%rcx; sub $0x3333,%r12; or %r12,%rcx\n"
        "	sub $0x4444,%r13; or %r13,%rcx; sub $0x5555,%r14; or %r14,%rcx; sub $0x6666,%r15; or %r15,%rcx\n"
        "	sub $0x7777,%rdx; or %rdx,%rcx; sub $0x8888,%r8; or %r8,%rcx; sub $0x9999,%r9; or %r9,%rcx; sub $0xaaaa,%r10; or "
        "%r10,%rcx\n"
        "	mov (%rsp),%rbx; mov %rcx,(%rbx)\n"
        "	pop %rcx; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n.popsection\n");

/* `code` with a jump at offset `site` to a stub for the call at `call`. */
static uint8_t *build(const uint8_t *code, size_t n, size_t site, size_t call, bool any)
{
	uint8_t *page = mmap(NULL, 0x2000, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct helper_module m;
	struct dp_buf out;
	uint64_t entry;
	cr_assert_neq(page, MAP_FAILED);
	memcpy(page, code, n);
	uint8_t *kept = memcpy(malloc(n), code, n);
	helper_code(&m, (uint64_t)(uintptr_t)page, kept, n);
	const struct dp_request req = {.site = (uint64_t)(uintptr_t)page + site,
	                               .text = &m.text,
	                               .hook = (uint64_t)(uintptr_t)hook_entry,
	                               .syscall = (uint64_t)(uintptr_t)page + call,
	                               .any_call = any};
	dp_buf_init(&out);
	struct dp_error *err = dp_syscall_stub_emit(&out, (uint64_t)(uintptr_t)page + STUB, &req, &entry);
	cr_assert_null(err, "%s", err ? err->message : "");
	if (site == call) /* the planner appends this */
		dp_buf_put(&out, (const uint8_t[]){0x0f, 0x05, 0xc3}, 3);
	memcpy(page + STUB, out.data, out.len);
	const int32_t rel = (int32_t)(entry - ((uint64_t)(uintptr_t)page + site + 5));
	page[site] = 0xe9;
	memcpy(page + site + 1, &rel, sizeof(rel));
	dp_buf_fini(&out);
	return page;
}

/* mov $nr,%eax; syscall; ret */
static uint8_t *with_number(uint8_t nr)
{
	return build((const uint8_t[]){0xb8, nr, 0, 0, 0, 0x0f, 0x05, 0xc3}, 8, 0, 5, false);
}

Test(hook_syscall, hook_makes_the_call)
{
	uint64_t bad = 0;
	uint8_t *code = with_number(SYS_getpid);
	hook.make = true;
	cr_assert_eq(run_code(code, 1, 2, &bad), MADE);
	cr_assert_eq(bad, 0);
	cr_assert_eq(hook.calls, 1);
	cr_assert_eq(hook.seen.gpr[0], SYS_getpid);
	cr_assert_eq(hook.seen.gpr[7], 1);
	cr_assert_eq(hook.seen.gpr[6], 2);
	cr_assert_eq(hook.seen.rip, (uint64_t)(uintptr_t)code + 5);
}

Test(hook_syscall, program_makes_the_call)
{
	uint64_t bad = 0;
	uint8_t *code = with_number(SYS_getpid);
	hook.make = false;
	cr_assert_eq(run_code(code, 0, 0, &bad), getpid());
	cr_assert_eq(bad, 0);
	cr_assert_eq(hook.calls, 1);
}

/* mov %rdi,%rax; nop (5 bytes); syscall: the hook handles only the calls that it is for. */
Test(hook_syscall, unknown_numbers_are_told_apart_as_they_come)
{
	const uint8_t code[] = {0x48, 0x89, 0xf8, 0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x05, 0xc3};
	uint8_t *at = build(code, sizeof(code), 3, 8, true);
	uint64_t bad = 0;
	hook.make = true;
	for (size_t i = 0; i < dp_nhooked_calls; i++)
		cr_assert_eq(run_code(at, dp_hooked_calls[i], 0, &bad), MADE, "%u", dp_hooked_calls[i]);
	cr_assert_eq(hook.calls, dp_nhooked_calls);
	cr_assert_eq(run_code(at, SYS_getpid, 0, &bad), getpid());
	cr_assert_eq(run_code(at, SYS_gettid, 0, &bad), gettid());
	cr_assert_eq(run_code(at, 100000, 0, &bad), -38);
	cr_assert_eq(hook.calls, dp_nhooked_calls);
	cr_assert_eq(bad, 0);
}

/* The jump is at the syscall instruction itself: the stub makes calls that are not ours. */
Test(hook_syscall, site_that_is_the_call)
{
	const uint8_t code[] = {0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3, 0x90, 0x90, 0x90};
	uint8_t *at = build(code, sizeof(code), 3, 3, true);
	uint64_t bad = 0;
	cr_assert_eq(run_code(at, SYS_getpid, 0, &bad), getpid());
	cr_assert_eq(hook.calls, 0);
	hook.make = false;
	cr_assert_eq(run_code(at, dp_hooked_calls[0], 100, &bad), -22);
	cr_assert_eq(hook.calls, 1);
	cr_assert_eq(bad, 0);
}
