/* SPDX-License-Identifier: MIT */
/* ustevents: an LTTng-UST program whose provider has dynprobe's name; replaces a probed program in tests of sessions alone. */
#include "target.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "ustevents_tp.h"

int main(void)
{
	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		lttng_ust_tracepoint(dynprobe, foo, i);
		lttng_ust_tracepoint(dynprobe, bar, i);
		target_sleep_us(1000);
	}
	puts("RESULT OK");
	return 0;
}
