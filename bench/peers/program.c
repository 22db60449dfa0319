/* SPDX-License-Identifier: MIT */
/*
 * The program that bench/run_peers.py probes with every tool. Prints "READY PID WORK WIDE" (addresses), and then obeys lines:
 *
 *	run KIND KIND THREADS PAIRS CALLS MS REST_US PLACES     loops.c
 *	watch PLACES, gaps                                       watch.c
 */
#define _GNU_SOURCE
#include "bench/peers/program.h"

#include <string.h>
#include <unistd.h>

#define FUNCTION(name, body)                                                                                                     \
	"	.p2align 6\n	.globl " #name "\n	.type " #name ",@function\n" #name ":\n	.cfi_startproc\n" body           \
	"	ret\n	.cfi_endproc\n	.size " #name ",.-" #name "\n"
#define PUSHES                                                                                                                   \
	"	push %rbx\n	.cfi_adjust_cfa_offset 8\n	mov %edi,%ebx; movsbl (%rsi),%eax; add %ebx,%eax\n"                             \
	"	pop %rbx\n	.cfi_adjust_cfa_offset -8\n"
#define LONG "	lea.d32 0(%rdi),%r9; nop; movsbl (%rsi),%eax; add %edi,%eax\n"

__asm__(".pushsection .text\n" FUNCTION(bare, PUSHES) FUNCTION(work, PUSHES) FUNCTION(wide_bare, LONG)
                FUNCTION(wide, LONG) "	.p2align 6\n.popsection\n");

static const char *const kind_names[KINDS] = {"none", "bare", "work", "wide_bare", "wide", "places", "getppid", "traced"};

static int kind_of(const char *name, enum kind *ret)
{
	for (int i = 0; i < KINDS; i++)
		if (strcmp(name, kind_names[i]) == 0) {
			*ret = (enum kind)i;
			return 1;
		}
	return 0;
}

static void obey(const char *line)
{
	struct run run = {.places = 1};
	char name[2][16];
	int places;

	if (sscanf(line, "run %15s %15s %d %d %ld %ld %ld %d", name[0], name[1], &run.threads, &run.pairs, &run.calls, &run.ms,
	           &run.rest_us, &run.places) == 8 &&
	    kind_of(name[0], &run.kind[0]) && kind_of(name[1], &run.kind[1]) && run.places > 0 && run.places <= PLACES &&
	    (run.kind[1] != KIND_PLACES || functions))
		loops_run(&run);
	else if (sscanf(line, "watch %d", &places) == 1 && places >= 0 && places <= PLACES && (!places || functions))
		watch_begin(places);
	else if (strcmp(line, "gaps\n") == 0)
		watch_end();
	else
		printf("what?\n");
}

int main(void)
{
	char line[256];

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	printf("READY %d %p %p\n", getpid(), (void *)work, (void *)wide);
	for (fflush(stdout); fgets(line, sizeof(line), stdin); fflush(stdout))
		obey(line);
	return 0;
}
