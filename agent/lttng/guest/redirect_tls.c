/* SPDX-License-Identifier: MIT */
/*
 * Thread-local memory of LTTng's libraries, in hits. ld.so's __tls_get_addr frees and allocates when the program has loaded or
 * unloaded libraries since the thread's last call of it: in a hit on malloc() that would be a deadlock. The addresses of LTTng's
 * blocks do not change while the thread lives, so they are looked up once, when the thread is primed.
 */
#include "agent/lttng/guest/redirect.h"

extern void *__tls_get_addr(const struct dp_tls_index *index);

static uint64_t module[DP_TLS_MODULES];
static void *(*real)(const struct dp_tls_index *);
static __thread uint64_t block[DP_TLS_MODULES] __attribute__((tls_model("initial-exec")));

void dp_lttng_tls_init(const uint64_t modules[DP_TLS_MODULES])
{
	real = __tls_get_addr; /* before it is redirected here */
	for (unsigned i = 0; i < DP_TLS_MODULES; i++)
		module[i] = modules[i];
}

void *dp_lttng_tls_get(const struct dp_tls_index *index)
{
	const uint64_t wanted = index->module;
	for (unsigned i = 0; i < DP_TLS_MODULES; i++)
		if (wanted == module[i] && block[i])
			return (void *)(block[i] + index->offset);
	return real(index);
}

void dp_lttng_tls_prime(void)
{
	for (unsigned i = 0; i < DP_TLS_MODULES; i++)
		if (module[i] && real && !block[i])
			block[i] = (uint64_t)(uintptr_t)real(&(struct dp_tls_index){.module = module[i]});
}
