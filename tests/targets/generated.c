/* SPDX-License-Identifier: MIT */
/*
 * generated: calls foo, then waits; from SIGUSR1 on in generated code, whose frames cannot be unwound, on a part of the stack
 * that has not been written since foo. Until SIGTERM.
 */
#include "target.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

/* sub $8192, %rsp; mov $35, %eax; xor %esi, %esi; syscall; add $8192, %rsp; ret: nanosleep(rdi, NULL) */
static const unsigned char code[] = {0x48, 0x81, 0xec, 0x00, 0x20, 0x00, 0x00, 0xb8, 0x23, 0x00, 0x00, 0x00, 0x31,
                                     0xf6, 0x0f, 0x05, 0x48, 0x81, 0xc4, 0x00, 0x20, 0x00, 0x00, 0xc3};

static volatile sig_atomic_t generated;

static void on_usr1(int sig)
{
	generated = sig;
}

int main(void)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	long bad = 0;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 1;
	void (*const wait)(const struct timespec *) = (void (*)(const struct timespec *))(uintptr_t)page;
	target_stop_on_term();
	signal(SIGUSR1, on_usr1);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i) != i * 3 + 1;
		if (generated)
			wait(&moment);
		else
			nanosleep(&moment, NULL);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
