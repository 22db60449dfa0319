/* SPDX-License-Identifier: MIT */
/*
 * Runs before all code of liblttng-ust: as the resolver of an indirect function. ld.so relocates a library after those it depends
 * on, resolvers last, and calls constructors when all of them are relocated. So now liblttng-ust's address tables are complete,
 * and its constructor, which creates threads, sockets and shared memory, has not run. (-z initfirst would also work, but ld.so
 * then keeps the half-loaded object in a global variable: a fork child made at that moment that loads a library of its own would
 * initialise ours, relocated or not.)
 *
 * A resolver has no arguments: it learns all from the order of the loaded objects. Objects loaded for us come after us; a
 * liblttng-ust before us is the program's own, and is not changed. Nor can the resolver mark its thread: thread-local memory is
 * set up after relocation.
 */
#include "agent/lttng/guest/guest.h"
#include "agent/lttng/guest/redirect.h"

#include <link.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UST, COMMON, TRACEPOINT, NUMA, CONTROL, OURS, OBJECTS };

static const char *const names[] = {
        [UST] = "liblttng-ust.so.", [COMMON] = "liblttng-ust-common.so.", [TRACEPOINT] = "liblttng-ust-tracepoint.so.",
        [NUMA] = "libnuma.so.",     [CONTROL] = "liblttng-ust-ctl.so.",
};

enum dp_lttng_guest dp_lttng_guest;
const char *dp_lttng_guest_error;

struct search {
	struct dp_object found[OBJECTS];
	unsigned n;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct dp_object o;
	(void)size;
	dp_object_of(info, &o);
	o.position = s->n++;
	if (!o.dynamic)
		return 0;
	if (dp_object_contains(info, names))
		s->found[OURS] = o;
	for (unsigned i = 0; i < OURS; i++)
		if (!s->found[i].dynamic && strncmp(dp_object_soname(&o), names[i], strlen(names[i])) == 0)
			s->found[i] = o;
	return 0;
}

extern int lttng_ust_loaded __attribute__((weak)); /* liblttng-ust's: 1 after its constructor */

static void fail(const char *why)
{
	dp_lttng_guest = DP_GUEST_FAILED;
	dp_lttng_guest_error = why;
}

/* The destructors first: at exit() they would close LTTng's descriptors by number, on a thread where those are the program's. */
static bool change(const struct dp_object *o, uint64_t *found)
{
	if (!dp_object_unseal(o))
		return false;
	dp_object_drop_destructors(o);
	if (found)
		dp_object_redirect(o, found);
	return dp_object_seal(o);
}

/* The program may have a libnuma of its own. */
static bool came_with_us(const struct search *s, unsigned i)
{
	return s->found[i].dynamic && s->found[i].position > s->found[OURS].position;
}

/* The loader relocates in another order: LTTng's threads have started without us, and are left as they are. */
static bool too_late(const struct search *s)
{
	if (!&lttng_ust_loaded || !lttng_ust_loaded)
		return false;
	for (unsigned i = UST; i <= TRACEPOINT; i++)
		if (came_with_us(s, i) && !change(&s->found[i], NULL))
			break;
	fail("the target's dynamic loader did not call the sink before liblttng-ust's constructors");
	return true;
}

static void settle(const struct search *s)
{
	uint64_t found = 0, ignored = 0;
	dp_lttng_tls_init((const uint64_t[DP_TLS_MODULES]){s->found[UST].tls_module, s->found[COMMON].tls_module});
	if (!change(&s->found[UST], &found))
		return fail("cannot change liblttng-ust's address tables in this process");
	if (s->found[CONTROL].dynamic)
		return fail("the program is itself part of LTTng (it uses liblttng-ust-ctl)");
	for (unsigned i = COMMON; i <= NUMA; i++)
		if (came_with_us(s, i) && !change(&s->found[i], &ignored))
			return fail("cannot change the address tables of liblttng-ust's libraries in this process");
	if (~found & dp_lttng_redirections_needed())
		return fail("this version of liblttng-ust calls the C library in a way that dynprobe does not support");
	dp_lttng_guest = DP_GUEST_SETTLED;
}

/* Lets the program move and unmount its directories, and enter other mount namespaces, despite LTTng's threads. */
static void leave_directory(void)
{
	if (unshare(CLONE_FS) == 0 && chdir("/") != 0)
		return; /* they keep the program's directory */
}

/* Rebinds our own calls, before the first of them. ld.so seals the table after us. */
static void be_libcs(void)
{
	struct dp_object own;
	dp_libc_find();
	dp_libc_object(&own);
	dp_object_rebind(&own);
}

static void early(void)
{
	be_libcs();
	struct search s = {0};
	dl_iterate_phdr(look, &s);
	if (!s.found[UST].dynamic || !s.found[OURS].dynamic)
		return fail("liblttng-ust was not found among the loaded objects");
	if (s.found[UST].position < s.found[OURS].position) {
		dp_lttng_guest = DP_GUEST_HOST;
		return;
	}
	if (too_late(&s))
		return;
	dp_lttng_loader_is((int)syscall(SYS_gettid));
	leave_directory();
	dp_lttng_ordinary_priority();
	settle(&s);
}

static void nothing(void)
{
}

__attribute__((used)) static void (*resolve(void))(void)
{
	early();
	return nothing;
}

void dp_lttng_anchor(void) __attribute__((ifunc("resolve")));
