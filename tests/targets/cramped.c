/* SPDX-License-Identifier: MIT */
/*
 * cramped HOW [N]: calls foo() in a loop, in a process with little room.
 *
 *   maps N   N mappings fewer than the kernel allows
 *   lock     present and future memory is locked
 *   mdwe     writable memory cannot be made executable (PR_SET_MDWE)
 */
#include "target_foo.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#define PAGE 4096ul

/* Maps neighbours with different rights until that fails, then unmaps N. */
static void fill_with_mappings(long left)
{
	const size_t most = 4ul << 20;
	char *area = mmap(NULL, most * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i = 1;
	while (area != MAP_FAILED && i < most && !mprotect(area + i * PAGE, PAGE, PROT_READ))
		i += 2;
	for (long n = 0; n < left / 2 + 1 && i > 2; n++)
		mprotect(area + (i -= 2) * PAGE, PAGE, PROT_NONE);
}

static int prepare(const char *how, long n)
{
	if (!strcmp(how, "maps"))
		fill_with_mappings(n);
	if (!strcmp(how, "lock"))
		return mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!strcmp(how, "mdwe"))
		return prctl(PR_SET_MDWE, 1, 0, 0, 0);
	return 0;
}

int main(int argc, char **argv)
{
	long bad = 0;
	target_stop_on_term();
	if (prepare(argc > 1 ? argv[1] : "", target_number(argc, argv, 2, 0))) {
		printf("CANNOT %s: %s\n", argv[1], strerror(errno));
		return 3;
	}
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i, "alpha") != target_expected(i, "alpha");
		target_sleep_us(300);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
