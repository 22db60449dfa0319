/* SPDX-License-Identifier: MIT */
/* Where the kernel puts the heap, also of a process that has none yet. */
#include "probes/image/image_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_FIELD     3 /* first field after the name, which may contain anything; see proc_pid_stat(5) */
#define START_BRK_FIELD 47

static uint64_t field(const char *text, int wanted)
{
	for (int i = FIRST_FIELD; text && i < wanted; i++) {
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	return text ? strtoull(text, NULL, 10) : 0;
}

uint64_t dp_image_heap_start(const struct dp_image *image)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/stat", image->pid);
	FILE *f = image->pid ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	const char *behind = strrchr(text, ')');
	return behind && behind[1] ? field(behind + 2, START_BRK_FIELD) : 0;
}
