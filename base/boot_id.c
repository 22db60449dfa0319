/* SPDX-License-Identifier: MIT */
#include "base/boot_id.h"

#include "base/cleanup.h"

#include <ctype.h>

void dp_boot_id(char id[DP_BOOT_ID])
{
	dp_auto_fclose FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n = f ? fread(id, 1, DP_BOOT_ID - 1, f) : 0;
	id[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? id[i] != '-' : !isxdigit((unsigned char)id[i]))
			n = 0;
	if (n != DP_BOOT_ID - 1)
		id[0] = '\0';
}
