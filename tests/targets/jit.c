/* SPDX-License-Identifier: MIT */
/*
 * jit [MAP [busy]]: calls foo through two functions that it generates with frame pointers, jit_outer and jit_inner; from SIGUSR1
 * on through jit_later, too, which it generates then. Their names are in the perf map MAP (or "": /tmp/perf-PID.map), which it
 * removes at its end, at SIGTERM. No table describes them. jit_outer pushes a return address and jumps, as interpreters do.
 */
#include "target.h"

#include <sys/mman.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

enum { PAGE = 4096, FUNCTIONS = 3 }; /* each on a page of its own, which is executable from then on */

static volatile sig_atomic_t later;
static char map[4096];
static unsigned char *page;
static size_t used;

static void on_usr1(int sig)
{
	later = sig;
}

/* push %rbp; mov %rsp, %rbp; mov $callee, %rax; call *%rax; add $1, %eax; pop %rbp; ret: what callee returns, plus 1 */
static const unsigned char calling[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,    0,    0,
                                        0,    0,    0,    0xff, 0xd0, 0x83, 0xc0, 0x01, 0x5d, 0xc3};
/* The same with lea 13(%rip), %rcx; push %rcx; mov $callee, %rax; jmp *%rax instead of the call. */
static const unsigned char jumping[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x0d, 0x0d, 0, 0,    0,    0x51, 0x48, 0xb8, 0,
                                        0,    0,    0,    0,    0,    0,    0,    0xff, 0xe0, 0x83, 0xc0, 0x01, 0x5d, 0xc3};

static uintptr_t generate(const char *name, uintptr_t callee, bool jumps)
{
	const size_t n = jumps ? sizeof(jumping) : sizeof(calling);
	unsigned char *at = page + used;
	FILE *f = fopen(map, "a");
	memcpy(at, jumps ? jumping : calling, n);
	memcpy(at + (jumps ? 14 : 6), &callee, sizeof(callee));
	mprotect(at, PAGE, PROT_READ | PROT_EXEC);
	used += PAGE;
	if (f) {
		fprintf(f, "%lx %zx %s\n", (unsigned long)(uintptr_t)at, n, name);
		fclose(f);
	}
	return (uintptr_t)at;
}

/* Its frame is found by the frame pointer that jit_outer has saved. */
TARGET_PROBED unsigned round_of(uintptr_t fn, unsigned a)
{
	return ((unsigned (*)(unsigned))fn)(a) + 1;
}

int main(int argc, char **argv)
{
	unsigned long bad = 0;
	if (argc > 1 && *argv[1])
		snprintf(map, sizeof(map), "%s", argv[1]);
	else
		snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	page = mmap(NULL, FUNCTIONS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	target_stop_on_term();
	signal(SIGUSR1, on_usr1);
	const uintptr_t inner = generate("jit_inner", (uintptr_t)foo, false), outer = generate("jit_outer a;b (x)", inner, true);
	uintptr_t third = 0;
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		if (later && !third)
			third = generate("jit_later", outer, false);
		bad += round_of(outer, i) != i * 3 + 4;
		bad += third && round_of(third, i) != i * 3 + 5;
		if (argc < 3)
			target_sleep_us(1000);
	}
	remove(map);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
