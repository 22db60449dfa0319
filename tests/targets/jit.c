/* SPDX-License-Identifier: MIT */
/*
 * jit [MAP [busy]]: calls foo through two functions that it generates with frame pointers, jit_outer and jit_inner; from SIGUSR1
 * on through jit_later, too, which it generates then. Their names are in the perf map MAP (or "": /tmp/perf-PID.map), which it
 * removes at its end, at SIGTERM. If MAP ends with '/', they are in a dump in that folder, MAPjit-PID.dump, of which it maps a
 * page. No table describes them. jit_outer pushes a return address and jumps, as interpreters do.
 */
#include "target.h"

#include <elf.h>
#include <fcntl.h>
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

static int dump = -1;

/* perf's jitdump: a header, and a record for each function, with its name and code. */
static int begin_dump(void)
{
	const uint32_t header[10] = {0x4a695444, 1, sizeof(header), EM_X86_64, 0, (uint32_t)getpid()};
	dump = open(map, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return dump < 0 || write(dump, header, sizeof(header)) != sizeof(header) ||
	       mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED;
}

static void add_to_dump(const void *at, size_t n, const char *name)
{
	static uint64_t index;
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, addr, code_size, index;
	} record = {.size = (uint32_t)(sizeof(record) + strlen(name) + 1 + n), .vma = (uintptr_t)at, .addr = (uintptr_t)at};
	record.code_size = n;
	record.index = index++;
	if (write(dump, &record, sizeof(record)) < 0 || write(dump, name, strlen(name) + 1) < 0 || write(dump, at, n) < 0)
		abort();
}

static uintptr_t generate(const char *name, uintptr_t callee, bool jumps)
{
	const size_t n = jumps ? sizeof(jumping) : sizeof(calling);
	unsigned char *at = page + used;
	FILE *f = dump < 0 ? fopen(map, "a") : NULL;
	memcpy(at, jumps ? jumping : calling, n);
	memcpy(at + (jumps ? 14 : 6), &callee, sizeof(callee));
	mprotect(at, PAGE, PROT_READ | PROT_EXEC);
	used += PAGE;
	if (dump >= 0)
		add_to_dump(at, n, name);
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
	const bool dumps = argc > 1 && *argv[1] && argv[1][strlen(argv[1]) - 1] == '/';
	if (dumps)
		snprintf(map, sizeof(map), "%sjit-%d.dump", argv[1], (int)getpid());
	else if (argc > 1 && *argv[1])
		snprintf(map, sizeof(map), "%s", argv[1]);
	else
		snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	page = mmap(NULL, FUNCTIONS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || (dumps && begin_dump()))
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
