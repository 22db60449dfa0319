/* SPDX-License-Identifier: MIT */
/*
 * What liblttng-ust must not do as a guest, changed in its own tables of addresses (never in its code, never in anybody else's):
 *
 *   write, writev   would write to the program's descriptors: handed to the waker (wake.c)
 *   close           LTTng's threads close what the waker may still have to write to
 *   fork, waitpid   LTTng forks to make its shared memory when no session daemon has yet; the program's fork handlers would run,
 * and its wait() could find the child. The child is made without both. syscall         perf_event_open is refused, and with it
 * the perf contexts, which open a descriptor and allocate memory in the first hit of each thread destructors     at exit() they
 * run on a thread of the program, and close LTTng's descriptors by number: those would be the program's. In a fork child they may
 * wait for a lock whose holder does not exist there. The session daemon does not need them: a killed process has none either.
 */
#include "agent/lttng/event.h"

#define _LGPL_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <lttng/urcu/urcu-ust.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long result(long ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static long raw6(long nr, const long a[6])
{
	long ret;
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

/* A child that sends no signal and that only __WCLONE finds. */
static int quiet_fork(void)
{
	return (int)result(raw6(SYS_clone, (const long[6]){0}));
}

static pid_t quiet_waitpid(pid_t pid, int *status, int options)
{
	return (pid_t)result(raw6(SYS_wait4, (const long[6]){pid, (long)status, options | __WCLONE}));
}

static long guarded_syscall(long nr, ...)
{
	long a[6];
	va_list list;
	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return nr == SYS_perf_event_open ? result(-ENOSYS) : result(raw6(nr, a));
}

static int patient_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	static const struct timeval usual = {.tv_sec = 3};
	const bool timeout = level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO) && size == sizeof(usual);
	const long a[6] = {fd, level, name, (long)(timeout ? &usual : value), size};
	return (int)result(raw6(SYS_setsockopt, a));
}

static void nothing(void)
{
}

struct redirection {
	const char *name;
	void *to;
	bool required;
};

static const struct redirection redirections[] = {
        {"write", (void *)dp_lttng_write, true},           {"writev", (void *)dp_lttng_writev, true},
        {"close", (void *)dp_lttng_close, true},           {"fork", (void *)quiet_fork, false},
        {"waitpid", (void *)quiet_waitpid, false},         {"syscall", (void *)guarded_syscall, false},
        {"setsockopt", (void *)patient_setsockopt, false},
};
#define REDIRECTIONS (sizeof(redirections) / sizeof(redirections[0]))
#define CHANGES      16 /* entries of liblttng-ust's tables */

/* ---- a loaded object ---------------------------------------------------------------------------------------------- */

struct object {
	uint64_t inside; /* in: an address in it */
	uint64_t base, relro, relro_end;
	const ElfW(Dyn) * dynamic;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;
	bool found = false;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint64_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && o->inside - start < p->p_memsz)
			found = true;
		else if (p->p_type == PT_DYNAMIC)
			o->dynamic = (const ElfW(Dyn) *)start;
		else if (p->p_type == PT_GNU_RELRO) {
			o->relro = start & ~UINT64_C(4095);
			o->relro_end = (start + p->p_memsz) & ~UINT64_C(4095); /* as ld.so does */
		}
	}
	o->base = info->dlpi_addr;
	if (!found)
		*o = (struct object){.inside = o->inside};
	return found;
}

static bool find_object(const void *inside, struct object *ret)
{
	*ret = (struct object){.inside = (uint64_t)(uintptr_t)inside};
	return dl_iterate_phdr(look, ret) && ret->dynamic;
}

static uint64_t entry(const struct object *o, int64_t tag)
{
	for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_val;
	return 0;
}

/* Of a table: some C libraries relocate these entries in place, others do not. */
static uint64_t table(const struct object *o, int64_t tag)
{
	const uint64_t value = entry(o, tag);
	return value && value < o->base ? value + o->base : value;
}

static bool store(const struct object *o, uint64_t where, void *value)
{
	const uint64_t page = where & ~UINT64_C(4095);
	const bool sealed = where >= o->relro && where < o->relro_end;
	if (sealed && mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n((void **)(uintptr_t)where, value, __ATOMIC_RELEASE);
	return !sealed || mprotect((void *)page, 4096, PROT_READ) == 0;
}

/* ---- its addresses of functions ----------------------------------------------------------------------------------- */

static const struct redirection *redirection_of(const struct object *o, const ElfW(Rela) * r)
{
	const ElfW(Sym) *symbols = (const ElfW(Sym) *)table(o, DT_SYMTAB);
	const char *names = (const char *)table(o, DT_STRTAB);
	const uint32_t type = ELF64_R_TYPE(r->r_info);
	if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
		return NULL;
	const char *name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;
	for (size_t i = 0; i < REDIRECTIONS; i++)
		if (strcmp(name, redirections[i].name) == 0)
			return &redirections[i];
	return NULL;
}

static struct {
	uint64_t slot;
	void *was;
} changed[CHANGES];
static unsigned nchanged;

/* Returns which redirections were made, a bit each. */
static unsigned redirect_table(const struct object *o, uint64_t relocations, uint64_t size)
{
	unsigned done = 0;
	const ElfW(Rela) *r = (const ElfW(Rela) *)relocations;
	for (; r && size >= sizeof(*r) && nchanged < CHANGES; r++, size -= sizeof(*r)) {
		const struct redirection *to = redirection_of(o, r);
		const uint64_t slot = o->base + r->r_offset;
		if (!to)
			continue;
		changed[nchanged].slot = slot;
		changed[nchanged].was = *(void **)slot;
		if (!store(o, slot, to->to))
			continue;
		nchanged++;
		done |= 1u << (to - redirections);
	}
	return done;
}

static bool redirected;

extern int lttng_ust_loaded __attribute__((weak)); /* liblttng-ust's: 1 when its constructor has run */

static void redirect_calls(void)
{
	struct object o;
	if ((&lttng_ust_loaded && lttng_ust_loaded) || !find_object((const void *)lttng_ust_probe_register, &o))
		return;
	const unsigned done = redirect_table(&o, table(&o, DT_JMPREL), entry(&o, DT_PLTRELSZ)) |
	                      redirect_table(&o, table(&o, DT_RELA), entry(&o, DT_RELASZ));
	redirected = true;
	for (size_t i = 0; i < REDIRECTIONS; i++)
		if (redirections[i].required && !(done & 1u << i))
			redirected = false;
}

/*
 * The first of LTTng's threads may fork before its constructor is over. So the calls are redirected before: when ld.so relocates
 * this object it has already relocated liblttng-ust, and has not yet called any constructor; and for a function that is chosen at
 * run time it calls us.
 */
static void (*choose_early(void))(void)
{
	redirect_calls();
	return nothing;
}

static void early(void) __attribute__((ifunc("choose_early")));

void dp_lttng_leave_alone(void)
{
	struct object o;
	if (find_object((const void *)lttng_ust_probe_register, &o))
		while (nchanged-- > 0)
			store(&o, changed[nchanged].slot, changed[nchanged].was);
}

static bool drop_destructors(const struct object *o)
{
	const uint64_t array = table(o, DT_FINI_ARRAY);
	for (uint64_t at = 0; array && at < entry(o, DT_FINI_ARRAYSZ); at += sizeof(void *))
		if (!store(o, array + at, (void *)nothing))
			return false;
	return true;
}

const char *dp_lttng_redirect(void)
{
	struct object o;
	early();
	if (!redirected)
		return "liblttng-ust calls write() in a way that could not be redirected";
	const void *const inside[] = {
	        (const void *)lttng_ust_probe_register,
	        (const void *)lttng_ust_urcu_register,
	        (const void *)lttng_ust_tracepoint_module_register,
	};
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
		if (!find_object(inside[i], &o) || !drop_destructors(&o))
			return "the destructors of liblttng-ust could not be disabled";
	return NULL;
}
