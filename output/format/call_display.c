/* SPDX-License-Identifier: MIT */
/* Names for system calls: their numbers, and the errors among their results. */
#include "output/format/put.h"
#include "probes/point/syscalls.h"

#include <string.h>

enum { ERRORS = 4095 }; /* the kernel's results -4095 to -1 are errors */

static bool put_error(struct dp_buf *b, uint64_t v)
{
	const int64_t result = (int64_t)v;
	const char *name = result < 0 && result >= -ERRORS ? strerrorname_np((int)-result) : NULL;
	if (!name)
		return false;
	dp_put_str(b, "-");
	dp_put_str(b, name);
	return true;
}

bool dp_put_call_display(struct dp_buf *b, enum dp_display look, uint64_t v)
{
	char number[32];
	if (look == DP_DISPLAY_RESULT)
		return put_error(b, v);
	if (look != DP_DISPLAY_CALL)
		return false;
	dp_put_str(b, dp_call_format(v, number, sizeof(number)));
	return true;
}
