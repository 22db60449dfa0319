/* SPDX-License-Identifier: MIT */
/* The notes of a core file. Sources: the kernel's fs/binfmt_elf.c, <sys/procfs.h>, <elf.h>. */
#include "pmodules/source/core_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>

#define THREADS_MOST 65536u
#define FILES_MOST   (1u << 20)

static struct dp_error *add_thread(struct dp_core *c, const uint8_t *desc, size_t n)
{
	struct elf_prstatus st;
	if (n < sizeof(st))
		return dp_core_bad(c, "a thread's registers are truncated");
	if (c->nthreads >= THREADS_MOST)
		return dp_core_bad(c, "it has more than %u threads", THREADS_MOST);
	memcpy(&st, desc, sizeof(st));
	if (!(c->nthreads & (c->nthreads - 1))) { /* at each power of two */
		struct dp_stopped_thread *grown = realloc(c->thread, (c->nthreads ? 2 * c->nthreads : 1) * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		c->thread = grown;
	}
	struct dp_stopped_thread *t = &c->thread[c->nthreads++];
	*t = (struct dp_stopped_thread){.tid = st.pr_pid, .state = '?', .syscall = -1};
	memcpy(&t->regs, st.pr_reg, sizeof(t->regs));
	const struct user_regs_struct *r = &t->regs;
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	memcpy(t->args, args, sizeof(args));
	if ((int64_t)r->orig_rax >= 0 && (int64_t)r->rax <= -512 && (int64_t)r->rax >= -516)
		t->syscall = (int64_t)r->orig_rax;
	if (c->nthreads == 1) {
		t->siginfo.si_signo = st.pr_cursig;
		c->pid = st.pr_pid; /* until prpsinfo gives a better one */
	}
	return NULL;
}

static void take_vector(struct dp_core *c, const uint8_t *desc, size_t n)
{
	struct user_fpregs_struct fp;
	if (!c->nthreads || n < sizeof(fp))
		return;
	struct dp_stopped_thread *t = &c->thread[c->nthreads - 1];
	memcpy(&fp, desc, sizeof(fp));
	memcpy(t->xmm, fp.xmm_space, sizeof(t->xmm));
	t->has_vector = true;
}

static void take_siginfo(struct dp_core *c, const uint8_t *desc, size_t n)
{
	if (c->nthreads && n >= sizeof(siginfo_t))
		memcpy(&c->thread[c->nthreads - 1].siginfo, desc, sizeof(siginfo_t));
}

static void printable(char *to, size_t size, const char *from, size_t n)
{
	size_t i = 0;
	for (; i < n && i + 1 < size && from[i]; i++)
		to[i] = (unsigned char)from[i] < ' ' || from[i] == 0x7f ? '?' : from[i];
	to[i] = '\0';
}

static void take_psinfo(struct dp_core *c, const uint8_t *desc, size_t n)
{
	struct elf_prpsinfo ps;
	if (n < sizeof(ps))
		return;
	memcpy(&ps, desc, sizeof(ps));
	c->pid = ps.pr_pid;
	printable(c->comm, sizeof(c->comm), ps.pr_fname, sizeof(ps.pr_fname));
	printable(c->args, sizeof(c->args), ps.pr_psargs, sizeof(ps.pr_psargs));
}

static void take_auxv(struct dp_core *c, const uint8_t *desc, size_t n)
{
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= n; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t a;
		memcpy(&a, desc + at, sizeof(a));
		if (a.a_type == AT_SYSINFO_EHDR)
			c->vdso = a.a_un.a_val;
		if (a.a_type == AT_PHDR)
			c->phdr = a.a_un.a_val;
		if (a.a_type == AT_ENTRY)
			c->entry = a.a_un.a_val;
		if (a.a_type == AT_RANDOM)
			c->random = a.a_un.a_val;
		if (a.a_type == AT_PHNUM)
			c->phnum = a.a_un.a_val;
	}
}

static uint64_t word(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* NT_FILE: count, page size, then count times (start, end, offset in pages), then as many NUL-terminated names. */
static struct dp_error *take_files(struct dp_core *c, const uint8_t *desc, size_t n)
{
	if (c->file || n < 16)
		return NULL;
	const uint64_t count = word(desc), page = word(desc + 8);
	if (count > FILES_MOST || count > (n - 16) / 24 || !page || page > UINT64_C(1) << 30)
		return dp_core_bad(c, "its list of mapped files is invalid");
	const char *name = (const char *)desc + 16 + 24 * count, *end = (const char *)desc + n;
	c->file = calloc(count + 1, sizeof(*c->file));
	if (!c->file)
		return dp_error_nomem();
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *at = desc + 16 + 24 * i;
		const char *nul = name < end ? memchr(name, 0, (size_t)(end - name)) : NULL;
		if (!nul)
			return dp_core_bad(c, "the names of its mapped files are truncated");
		const size_t size = (size_t)(nul - name) + 1;
		struct dp_core_file f = {word(at), word(at + 8), word(at + 16) * page, malloc(size), -1, false, false};
		if (!f.path)
			return dp_error_nomem();
		printable(f.path, size, name, size);
		name = nul + 1;
		if (f.start >= f.end || (c->nfiles && c->file[c->nfiles - 1].end > f.start) || *f.path != '/')
			free(f.path); /* overlaps, out of order, or not a file */
		else
			c->file[c->nfiles++] = f;
	}
	return NULL;
}

static struct dp_error *take(struct dp_core *c, uint32_t type, const uint8_t *desc, size_t n)
{
	switch (type) {
	case NT_PRSTATUS:
		return add_thread(c, desc, n);
	case NT_FPREGSET:
		take_vector(c, desc, n);
		break;
	case NT_SIGINFO:
		take_siginfo(c, desc, n);
		break;
	case NT_PRPSINFO:
		take_psinfo(c, desc, n);
		break;
	case NT_AUXV:
		take_auxv(c, desc, n);
		break;
	case NT_FILE:
		return take_files(c, desc, n);
	default:
		break;
	}
	return NULL;
}

struct dp_error *dp_core_notes(struct dp_core *c, const uint8_t *notes, size_t n)
{
	size_t at = 0;
	while (at < n && n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		memcpy(&h, notes + at, sizeof(h));
		at += sizeof(h);
		const uint64_t name = ((uint64_t)h.n_namesz + 3) & ~UINT64_C(3), desc = ((uint64_t)h.n_descsz + 3) & ~UINT64_C(3);
		if (name > n - at || h.n_descsz > n - at - name)
			return dp_core_bad(c, "its notes are truncated");
		if (h.n_namesz == 5 && !memcmp(notes + at, "CORE", 5))
			DP_TRY(take(c, h.n_type, notes + at + name, h.n_descsz));
		at += name;
		at += desc < n - at ? desc : n - at;
	}
	return NULL;
}
