/* SPDX-License-Identifier: MIT */
/* The entry point of libdynprobe-lttng.so. Called once, on the loader's thread, after liblttng-ust's constructors. */
#include "agent/lttng/guest/guest.h"
#include "agent/lttng/guest/redirect.h"
#include "agent/lttng/hosted.h"

#include <cpuid.h>
#include <errno.h>
#include <lttng/ust-thread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static uint32_t read_xcr0(void)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* Detects the available vector state, Intel SDM 1, 13.2. */
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

/*
 * NULL: the loader and early.c agree. If the program had liblttng-ust first, that is left unchanged: the program shares its
 * descriptors with it.
 */
static const char *check_guest(const struct dp_sink *sink)
{
	const bool present = sink->flags & DP_SINK_UST_PRESENT;
	switch (dp_lttng_guest) {
	case DP_GUEST_SETTLED:
		return present ? "the program unloaded liblttng-ust at the same time" : NULL;
	case DP_GUEST_HOST:
		return present ? NULL : "the program loaded liblttng-ust itself at the same time";
	case DP_GUEST_FAILED:
		return dp_lttng_guest_error;
	case DP_GUEST_UNKNOWN:
		break;
	}
	return "the target's dynamic loader did not resolve the sink's functions";
}

/* Prepares the sink's thread itself, before any other thread: ld.so then knows LTTng's thread-local memory. */
static void begin(void)
{
	dp_lttng_ordinary_priority();
	lttng_ust_init_thread();
	dp_lttng_tls_prime();
	prctl(PR_SET_NAME, DP_SINK_THREAD);
}

static uint64_t entry(void (*f)(void))
{
	return (uint64_t)(uintptr_t)f;
}

__attribute__((visibility("default"))) void dp_lttng_start(struct dp_sink *sink);
void dp_lttng_start(struct dp_sink *sink)
{
	if (sink->magic != DP_SINK_MAGIC || sink->abi != DP_SINK_ABI)
		return fail(sink, "dynprobe and its shared object have different versions", NULL);
	dp_lttng_anchor();
	dp_lttng_be_guest();
	dp_lttng_vector = vector_state();
	dp_lttng_phdr_init(sink);
	const char *why = check_guest(sink);
	if (why)
		return fail(sink, why, NULL);
	sink->redirected = dp_lttng_guest == DP_GUEST_SETTLED;
	begin();
	if (!dp_lttng_threads_init(sink))
		return fail(sink, "cannot prepare threads for LTTng", strerror(errno));
	sink->enter = entry(dp_lttng_enter);
	sink->emit = entry(dp_lttng_emit);
	sink->emit_capture = entry(dp_lttng_emit_capture);
	sink->prime = entry(dp_lttng_prime);
	sink->prime_hook = entry(dp_lttng_prime_hook);
	sink->block = dp_lttng_block_offset();
	sink->serve = (uint64_t)(uintptr_t)dp_lttng_serve;
	sink->dwell = (uint64_t)(uintptr_t)dp_lttng_dwell;
	sink->work = (uint64_t)(uintptr_t)&dp_lttng_work;
	__atomic_store_n(&sink->state, DP_SINK_READY, __ATOMIC_RELEASE);
}
