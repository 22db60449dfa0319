/* SPDX-License-Identifier: MIT */
/*
 * hugetext: moves its text to anonymous memory, which can have huge pages, as some servers do at their start (node
 * --use-largepages, HHVM, MySQL). In its maps this memory has no file name.
 */
#include "target.h"

#include <sys/mman.h>

#define HUGE ((size_t)2 << 20)

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static bool find_text(char **start, size_t *n)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from = 0, to = 0;
	bool found = false;
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx r-xp", &from, &to) == 2 && strstr(line, " r-xp ") &&
		        (unsigned long)(uintptr_t)foo - from < to - from;
	if (f)
		fclose(f);
	*start = (char *)from;
	*n = to - from;
	return found;
}

/* One call, so that no thread is ever without text. */
static bool move_text(void)
{
	char *text;
	size_t n;
	if (!find_text(&text, &n))
		return false;
	char *copy = mmap(NULL, n + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	copy = (char *)(((uintptr_t)copy + HUGE - 1) & ~(HUGE - 1)) + ((uintptr_t)text & 0xfff);
	madvise(copy, n, MADV_HUGEPAGE);
	memcpy(copy, text, n);
	return !mprotect(copy, n, PROT_READ | PROT_EXEC) && mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, text) == text;
}

int main(void)
{
	long wrong = !move_text();
	target_stop_on_term();
	target_ready();
	while (!target_stop) {
		wrong += foo(5) != 16;
		target_sleep_us(500);
	}
	printf("RESULT %s wrong %ld\n", wrong ? "BAD" : "OK", wrong);
	return wrong != 0;
}
