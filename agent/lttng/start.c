/* SPDX-License-Identifier: MIT */
/* The entry point of libdynprobe-lttng.so, called once, on the loader's thread, when liblttng-ust's constructors have run. */
#include "agent/lttng/hosted.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint32_t read_xcr0(void)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* Intel SDM 1, 13.2: how programs learn which vector state there is. */
static uint32_t vector_state(void)
{
	uint32_t a, b, c, d, flags = 0;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX512BW))
		flags |= DP_VECTOR_BW;
	if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & 4))
		flags |= DP_VECTOR_INUSE;
	return flags | (read_xcr0() & DP_VECTOR_ALL);
}

static void fail(struct dp_sink *sink, const char *what, const char *why)
{
	snprintf(sink->error, sizeof(sink->error), "%s%s%s", what, why ? ": " : "", why ? why : "");
	__atomic_store_n(&sink->state, DP_SINK_FAILED, __ATOMIC_RELEASE);
}

/* Where the program had liblttng-ust itself, that stays as the program knows it: it shares its descriptors with it. */
static bool settle(struct dp_sink *sink)
{
	if (sink->flags & DP_SINK_UST_PRESENT) {
		dp_lttng_leave_alone();
		return true;
	}
	const char *why = dp_lttng_redirect();
	if (why) {
		fail(sink, why, NULL);
		return false;
	}
	sink->redirected = 1;
	if (!dp_lttng_waker_start()) {
		fail(sink, "no thread could be made", strerror(errno));
		return false;
	}
	dp_lttng_settle_guests();
	return true;
}

static uint64_t entry(void (*f)(void))
{
	return (uint64_t)(uintptr_t)f;
}

__attribute__((visibility("default"))) void dp_lttng_start(struct dp_sink *sink);
void dp_lttng_start(struct dp_sink *sink)
{
	if (sink->magic != DP_SINK_MAGIC || sink->abi != DP_SINK_ABI)
		return fail(sink, "the tool and its shared object are of different versions", NULL);
	dp_lttng_be_guest();
	dp_lttng_vector = vector_state();
	if (!settle(sink))
		return;
	if (!dp_lttng_threads_init(sink))
		return fail(sink, "no thread can be prepared", strerror(errno));
	sink->enter = entry(dp_lttng_enter);
	sink->emit = entry(dp_lttng_emit);
	sink->emit_capture = entry(dp_lttng_emit_capture);
	sink->prime = entry(dp_lttng_prime);
	sink->prime_hook = entry(dp_lttng_prime_hook);
	sink->serve = (uint64_t)(uintptr_t)dp_lttng_serve;
	__atomic_store_n(&sink->state, DP_SINK_READY, __ATOMIC_RELEASE);
}
