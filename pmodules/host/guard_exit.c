/* SPDX-License-Identifier: MIT */
/*
 * A module that calls exit() must not end dynprobe: a process may be held, and the snapshot is not yet written.
 *
 * A shared object calls functions of other objects through its own GOT, which the dynamic loader fills in. After loading a
 * module, its GOT entries for functions that end the process are redirected to functions here, which end the module's call like a
 * crash in its own code (guard.c); libc's state is consistent then. Other objects' calls do not change.
 *
 * Not covered: exit() in a library of the module, or in its constructors, which run before its GOT can be changed. Then an exit
 * handler here names the module and ends dynprobe with its own status; the kernel releases what was held. A direct system call
 * cannot be intercepted.
 *
 * ELF relocations: "System V ABI, AMD64 Architecture Processor Supplement", 4.4.
 */
#include "pmodules/host/guard.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Outside a guarded call (a thread that the module made, or code that it left behind) only the thread ends. */
static void __attribute__((noreturn)) leave(const char *how)
{
	dp_guard_leave(how);
	dprintf(STDERR_FILENO, "dynprobe: a thread of a pmodule called %s: the thread was ended, dynprobe continues\n", how);
	for (;;)
		syscall(SYS_exit, 0);
}

static void no_exit(int status)
{
	(void)status;
	leave("exit()");
}

static void no_quick_exit(int status)
{
	(void)status;
	leave("quick_exit()");
}

static void no__exit(int status)
{
	(void)status;
	leave("_exit()");
}

/* A module's own threads may end this way. */
static void no_pthread_exit(void *result)
{
	dp_guard_leave("pthread_exit()");
	pthread_exit(result);
}

static void no_thrd_exit(int result)
{
	dp_guard_leave("thrd_exit()");
	pthread_exit((void *)(intptr_t)result);
}

/* err(3): logs the message first, since it is the module's reason. */
static void __attribute__((format(printf, 2, 0))) say(const char *how, const char *fmt, va_list args)
{
	char text[256] = "";
	if (fmt)
		vsnprintf(text, sizeof(text), fmt, args);
	pmodule_log(PMODULE_LOG_ERROR, "%s: %s", how, text);
}

static void no_err(int status, const char *fmt, ...)
{
	va_list args;
	(void)status;
	va_start(args, fmt);
	say("err()", fmt, args);
	va_end(args);
	leave("err()");
}

static void no_verr(int status, const char *fmt, va_list args)
{
	(void)status;
	say("err()", fmt, args);
	leave("err()");
}

static const struct {
	const char *name;
	void (*fn)(void);
} ours[] = {
        {"exit", (void (*)(void))no_exit},
        {"_exit", (void (*)(void))no__exit},
        {"_Exit", (void (*)(void))no__exit},
        {"quick_exit", (void (*)(void))no_quick_exit},
        {"err", (void (*)(void))no_err},
        {"errx", (void (*)(void))no_err},
        {"verr", (void (*)(void))no_verr},
        {"verrx", (void (*)(void))no_verr},
        {"thrd_exit", (void (*)(void))no_thrd_exit},
        {"pthread_exit", (void (*)(void))no_pthread_exit},
};

static void (*ours_for(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strcmp(name, ours[i].name))
			return ours[i].fn;
	return NULL;
}

/* ---- the module's GOT --------------------------------------------------------------------------------------------------- */

struct tables {
	const ElfW(Sym) * symbol;
	const char *string;
	const ElfW(Rela) * rela[2];
	size_t size[2];
};

static struct tables tables_of(const ElfW(Dyn) * d)
{
	struct tables t = {0};
	for (; d->d_tag != DT_NULL; d++) {
		void *at = (void *)d->d_un.d_ptr; /* glibc has relocated it */
		if (d->d_tag == DT_SYMTAB)
			t.symbol = at;
		else if (d->d_tag == DT_STRTAB)
			t.string = at;
		else if (d->d_tag == DT_JMPREL)
			t.rela[0] = at;
		else if (d->d_tag == DT_PLTRELSZ)
			t.size[0] = d->d_un.d_val;
		else if (d->d_tag == DT_RELA)
			t.rela[1] = at;
		else if (d->d_tag == DT_RELASZ)
			t.size[1] = d->d_un.d_val;
	}
	return t;
}

static bool is_read_only(const struct dl_phdr_info *info, uintptr_t at)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_GNU_RELRO && at - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

/* The loader may have made the entry's page read-only (RELRO). */
static bool set(const struct dl_phdr_info *info, uintptr_t at, void (*fn)(void))
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)(at & -size);
	const bool closed = is_read_only(info, at);
	if (closed && mprotect(page, size, PROT_READ | PROT_WRITE))
		return false;
	memcpy((void *)at, &fn, sizeof(fn));
	return !closed || !mprotect(page, size, PROT_READ);
}

bool dp_guard_exits(const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;
	bool ok = true;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	const struct tables t = dynamic ? tables_of(dynamic) : (struct tables){0};
	for (int k = 0; t.symbol && t.string && k < 2; k++)
		for (size_t i = 0; t.rela[k] && i < t.size[k] / sizeof(*t.rela[k]); i++) {
			const ElfW(Rela) *r = &t.rela[k][i];
			const ElfW(Sym) *s = &t.symbol[ELF64_R_SYM(r->r_info)];
			const unsigned type = ELF64_R_TYPE(r->r_info);
			void (*fn)(void) = s->st_shndx == SHN_UNDEF ? ours_for(t.string + s->st_name) : NULL;
			if (fn && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64))
				ok &= set(info, info->dlpi_addr + r->r_offset, fn);
		}
	return ok;
}

/* ---- calls of exit() that are not redirected ---------------------------------------------------------------------------- */

static pid_t opener;

static void at_exit(void)
{
	const struct pmodule *m = dp_module_current();
	if (!m || getpid() != opener)
		return;
	dprintf(STDERR_FILENO,
	        "dynprobe: exiting: the pmodule %s called exit() where that cannot be prevented (the process "
	        "resumes)\n",
	        m->id ? m->id : m->path);
	_exit(125);
}

void dp_guard_expect_exit(void)
{
	if (!opener && !atexit(at_exit))
		opener = getpid();
}
