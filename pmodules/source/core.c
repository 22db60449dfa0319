/* SPDX-License-Identifier: MIT */
/*
 * Core files. Counts, offsets and sizes in a core are checked against the file's size before use. Missing parts of a damaged core
 * are skipped if the rest makes sense without them (memory that a truncated dump lacks); otherwise the core is refused.
 */
#include "pmodules/source/core_internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MOST (UINT64_C(256) << 20)

struct dp_error *dp_core_bad(const struct dp_core *c, const char *fmt, ...)
{
	char what[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return dp_error(DP_TAG_BAD_CORE, "%s is not a usable core file: %s", c->path, what);
}

void dp_core_doubt(struct dp_core *c, const char *fmt, ...)
{
	va_list args;
	if (c->ndoubts == DP_CORE_DOUBTS_MOST)
		return;
	va_start(args, fmt);
	if (vasprintf(&c->doubt[c->ndoubts], fmt, args) >= 0)
		c->ndoubts++;
	va_end(args);
}

const char *dp_core_doubt_text(const struct dp_core *c, size_t i)
{
	return i < c->ndoubts ? c->doubt[i] : NULL;
}

bool dp_core_get(const struct dp_core *c, uint64_t offset, void *buf, size_t n)
{
	size_t done = 0;
	while (done < n) {
		const ssize_t got = pread(c->fd, (char *)buf + done, n - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* ---- headers ------------------------------------------------------------------------------------------------------------ */

static void add_load(struct dp_core *c, const Elf64_Phdr *p)
{
	if (!p->p_memsz || p->p_vaddr >= UINT64_C(1) << 47 || p->p_memsz > (UINT64_C(1) << 47) - p->p_vaddr)
		return; /* vsyscall, or invalid */
	uint64_t held = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz;
	const uint64_t there = p->p_offset < c->size ? c->size - p->p_offset : 0;
	if (held > there) { /* truncated */
		c->lacking += held - there;
		held = there;
	}
	c->load[c->nloads++] = (struct dp_core_load){p->p_vaddr, p->p_memsz, held, p->p_offset, p->p_flags};
}

static struct dp_error *read_notes(struct dp_core *c, const Elf64_Phdr *p)
{
	if (p->p_offset > c->size || p->p_filesz > c->size - p->p_offset || p->p_filesz > NOTES_MOST)
		return dp_core_bad(c, "its notes are truncated");
	c->notes += p->p_filesz;
	if (c->notes > NOTES_MOST) /* several segments may refer to the same bytes */
		return dp_core_bad(c, "it has more than 256 MiB of notes");
	dp_auto_free uint8_t *notes = malloc(p->p_filesz + 1);
	if (!notes)
		return dp_error_nomem();
	if (!dp_core_get(c, p->p_offset, notes, p->p_filesz))
		return dp_core_bad(c, "its notes cannot be read");
	return dp_core_notes(c, notes, p->p_filesz);
}

static int by_start(const void *a, const void *b)
{
	const struct dp_core_load *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Of overlapping ranges, keeps the first. */
static void drop_overlaps(struct dp_core *c)
{
	size_t n = 0;
	qsort(c->load, c->nloads, sizeof(*c->load), by_start);
	for (size_t i = 0; i < c->nloads; i++)
		if (!n || c->load[n - 1].start + c->load[n - 1].size <= c->load[i].start)
			c->load[n++] = c->load[i];
	c->nloads = n;
}

/* Some writers omit segments that they do not dump, usually text and constants. NT_FILE still lists these files. */
static struct dp_error *add_files(struct dp_core *c)
{
	const size_t n = c->nloads;
	struct dp_core_load *grown = realloc(c->load, (n + c->nfiles + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	c->load = grown;
	for (size_t i = 0, at = 0; i < c->nfiles; i++) { /* both ascend */
		const struct dp_core_file *f = &c->file[i];
		while (at < n && grown[at].start + grown[at].size <= f->start)
			at++;
		if ((at == n || grown[at].start >= f->end) && f->end < UINT64_C(1) << 47)
			grown[c->nloads++] = (struct dp_core_load){f->start, f->end - f->start, 0, 0, PF_R | PF_X};
	}
	qsort(c->load, c->nloads, sizeof(*c->load), by_start);
	return NULL;
}

static void say_what_lacks(struct dp_core *c)
{
	if (c->lacking)
		dp_core_doubt(c, "the core file is truncated (ulimit -c, a full disk?): %llu KiB of memory are missing",
		              (unsigned long long)(c->lacking + 1023) / 1024);
	if (!c->nfiles)
		dp_core_doubt(c, "the core file does not name the mapped files: addresses are known, but names and variables "
		                 "are not");
}

static struct dp_error *read_all(struct dp_core *c)
{
	Elf64_Ehdr e;
	size_t n = 0;
	struct dp_error *err = NULL;
	DP_TRY(dp_core_header(c, &e, &n));
	dp_auto_free Elf64_Phdr *phdr = malloc(n * sizeof(*phdr));
	c->load = calloc(n, sizeof(*c->load));
	if (!phdr || !c->load)
		return dp_error_nomem();
	if (!dp_core_get(c, e.e_phoff, phdr, n * sizeof(*phdr)))
		return dp_core_bad(c, "its program headers cannot be read");
	for (size_t i = 0; i < n && !err; i++)
		if (phdr[i].p_type == PT_LOAD)
			add_load(c, &phdr[i]);
		else if (phdr[i].p_type == PT_NOTE)
			err = read_notes(c, &phdr[i]);
	drop_overlaps(c);
	if (!err)
		say_what_lacks(c);
	if (!err)
		err = add_files(c);
	if (!err && !c->nthreads)
		err = dp_core_bad(c, "it has no threads");
	return err;
}

/* ---- the executable that the user names --------------------------------------------------------------------------------- */

/* A program built from other sources rarely has the same number of headers and an entry at the same page offset. */
static bool is_of_this_core(const struct dp_core *c, const char *exe)
{
	Elf64_Ehdr e;
	dp_auto_close int fd = dp_open_regular(exe);
	if (fd < 0 || pread(fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	return !c->entry || !c->phnum || (c->phnum == e.e_phnum && c->entry % 4096 == e.e_entry % 4096);
}

/* Replaces the file that contains the program's program headers by `exe`. */
static struct dp_error *put_exe(struct dp_core *c, const char *exe)
{
	const struct dp_core_file *at = NULL;
	char why[400];
	for (size_t i = 0; i < c->nfiles; i++)
		if (c->phdr >= c->file[i].start && c->phdr < c->file[i].end)
			at = &c->file[i];
	dp_auto_free char *old = at ? strdup(at->path) : NULL;
	dp_auto_free char *full = realpath(exe, NULL);
	if (!full)
		return dp_error_sys(DP_TAG_BAD_CORE, "cannot open the executable %s of the core file", exe);
	if (!is_of_this_core(c, full))
		return dp_core_bad(c, "%s is not the program that dumped it", exe);
	if (at && dp_core_is_rebuilt(c, at, full, why, sizeof(why)))
		return dp_core_bad(c, "%s is not the program that dumped it: %s", exe, why);
	if (!old)
		return dp_core_bad(c, "it does not say where its executable was mapped, so %s cannot be used", exe);
	for (size_t i = 0; i < c->nfiles; i++) {
		if (strcmp(c->file[i].path, old) != 0)
			continue;
		free(c->file[i].path);
		c->file[i].path = strdup(full);
		if (!c->file[i].path)
			return dp_error_nomem();
	}
	return NULL;
}

struct dp_error *dp_core_open(const char *path, const char *exe, struct dp_core **ret)
{
	struct stat st;
	struct dp_core *c = calloc(1, sizeof(*c));
	struct dp_error *err = NULL;
	if (!c || !(c->path = strdup(path))) {
		free(c);
		return dp_error_nomem();
	}
	c->fd = dp_open_regular(path);
	if (c->fd < 0 && (errno == ENXIO || !strcmp(path, "-")))
		err = dp_core_bad(c, "it is not a regular file, and dynprobe cannot seek in a pipe; save it "
		                     "first (cat >core)");
	else if (c->fd < 0 || fstat(c->fd, &st))
		err = dp_error_sys(DP_TAG_BAD_CORE, "cannot open the core file %s", path);
	if (!err) {
		c->size = (uint64_t)st.st_size;
		err = read_all(c);
	}
	if (!err && exe)
		err = put_exe(c, exe);
	if (!err)
		dp_core_check_files(c);
	if (err)
		dp_core_close(c);
	else
		*ret = c;
	return err;
}

struct dp_core *dp_core_close(struct dp_core *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->nfiles; i++) {
		free(c->file[i].path);
		if (c->file[i].fd >= 0)
			close(c->file[i].fd);
	}
	if (c->fd >= 0)
		close(c->fd);
	for (size_t i = 0; i < c->ndoubts; i++)
		free(c->doubt[i]);
	free(c->file);
	free(c->load);
	free(c->thread);
	free(c->path);
	free(c);
	return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static const struct dp_core_load *load_at(const struct dp_core *c, uint64_t addr)
{
	size_t lo = 0, hi = c->nloads;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (c->load[mid].start + c->load[mid].size <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->nloads && addr >= c->load[lo].start ? &c->load[lo] : NULL;
}

static struct dp_core_file *file_at(const struct dp_core *c, uint64_t addr)
{
	size_t lo = 0, hi = c->nfiles;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (c->file[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->nfiles && addr >= c->file[lo].start ? &c->file[lo] : NULL;
}

/* Reads what the dump omits because the file has it. */
static size_t read_file(struct dp_core_file *f, uint64_t addr, void *buf, size_t n)
{
	if (!f || f->rebuilt)
		return 0;
	if (!f->tried)
		f->fd = dp_open_regular(f->path);
	f->tried = true;
	if (f->fd < 0)
		return 0;
	if (n > f->end - addr)
		n = (size_t)(f->end - addr);
	const ssize_t got = pread(f->fd, buf, n, (off_t)(f->offset + (addr - f->start)));
	return got > 0 ? (size_t)got : 0;
}

size_t dp_core_read_held(const struct dp_core *c, uint64_t addr, void *buf, size_t n)
{
	const struct dp_core_load *l = load_at(c, addr);
	const uint64_t in = l ? addr - l->start : 0;
	return l && in < l->held && n <= l->held - in && dp_core_get(c, l->offset + in, buf, n) ? n : 0;
}

static size_t read_part(const struct dp_core *c, uint64_t addr, void *buf, size_t n)
{
	const struct dp_core_load *l = load_at(c, addr);
	if (!l)
		return 0;
	const uint64_t in = addr - l->start;
	if (n > l->size - in)
		n = (size_t)(l->size - in);
	if (in < l->held) {
		if (n > l->held - in)
			n = (size_t)(l->held - in);
		return dp_core_get(c, l->offset + in, buf, n) ? n : 0;
	}
	return l->flags & PF_W ? 0 : read_file(file_at(c, addr), addr, buf, n);
}

size_t dp_core_read(const struct dp_core *c, uint64_t addr, void *buf, size_t n)
{
	size_t done = 0, got = 1;
	while (done < n && got) {
		got = read_part(c, addr + done, (char *)buf + done, n - done);
		done += got;
	}
	return done;
}

/* ---- the image ---------------------------------------------------------------------------------------------------------- */

/* For a missing file, a hash of its path: mappings are compared by inode before their names are. */
static unsigned long long inode_of(const char *path)
{
	struct stat st;
	unsigned long long hash = 0xcbf29ce484222325u;
	if (!stat(path, &st) && st.st_ino)
		return (unsigned long long)st.st_ino;
	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash | 1;
}

#define TCACHE_CHUNK 0x290u /* size field of the first chunk in each glibc heap */

/* Cores do not name the heap, as /proc does: it is the first anonymous mapping after the program that starts like malloc's. */
static const struct dp_core_load *heap_of(const struct dp_core *c)
{
	const struct dp_core_file *exe = file_at(c, c->phdr);
	uint64_t end = 0, word[2];
	for (size_t i = 0; exe && i < c->nfiles; i++)
		if (!strcmp(c->file[i].path, exe->path))
			end = c->file[i].end;
	for (size_t i = 0; end && i < c->nloads; i++) {
		const struct dp_core_load *l = &c->load[i];
		if (l->start >= end && file_at(c, l->start))
			return NULL;
		if (l->start >= end && (l->flags & PF_W) && dp_core_read(c, l->start, word, sizeof(word)) == sizeof(word) &&
		    (word[1] & ~UINT64_C(7)) == TCACHE_CHUNK)
			return l;
	}
	return NULL;
}

/* A line in the format of /proc/PID/maps. Without code there is no module. */
static void put_line(const struct dp_core *c, const struct dp_core_load *l, const char *name, bool code, struct dp_buf *b)
{
	const struct dp_core_file *f = file_at(c, l->start);
	dp_buf_printf(b, "%llx-%llx %c%c%cp %08llx 00:00 %llu%s%s%s\n", (unsigned long long)l->start,
	              (unsigned long long)(l->start + l->size), l->flags & PF_R ? 'r' : '-', l->flags & PF_W ? 'w' : '-',
	              code ? 'x' : '-', f ? (unsigned long long)(f->offset + (l->start - f->start)) : 0,
	              f ? inode_of(f->path) : 0, f || *name ? " " : "", f ? f->path : name,
	              f && f->rebuilt ? " (another build)" : "");
}

/* Bounds the number of modules: an impossible list of files must not cost more time than a real one. */
static void put_lines(const struct dp_core *c, struct dp_buf *b)
{
	/* The kernel puts the random bytes for the program at the end of its stack. */
	const struct dp_core_load *heap = heap_of(c), *stack = c->random ? load_at(c, c->random) : NULL;
	const char *last = "";
	size_t modules = 0;
	for (size_t i = 0; i < c->nloads; i++) {
		const struct dp_core_load *l = &c->load[i];
		const struct dp_core_file *f = l->flags & PF_X ? file_at(c, l->start) : NULL;
		modules += f && strcmp(f->path, last) != 0;
		last = f ? f->path : last;
		put_line(c, l,
		         c->vdso && l->start == c->vdso ? "[vdso]"
		         : l == heap                    ? "[heap]"
		         : l == stack                   ? "[stack]"
		                                        : "",
		         (l->flags & PF_X) && (!f || modules <= DP_CORE_MODULES_MOST), b);
	}
}

static struct dp_error *put_vdso(const struct dp_core *c, struct dp_image *image)
{
	const struct dp_core_load *l = c->vdso ? load_at(c, c->vdso) : NULL;
	if (!l || l->start != c->vdso || l->held != l->size || l->size > UINT64_C(1) << 20)
		return NULL;
	dp_auto_free uint8_t *bytes = malloc(l->size);
	if (!bytes || dp_core_read(c, l->start, bytes, l->size) != l->size)
		return NULL;
	return dp_image_set_vdso(image, bytes, l->size);
}

struct dp_error *dp_core_image(struct dp_core *c, struct dp_image **ret)
{
	struct dp_buf maps;
	dp_buf_init(&maps);
	put_lines(c, &maps);
	struct dp_error *err = dp_image_create(dp_buf_str(&maps), "", 0, ret);
	if (maps.failed && !err) {
		*ret = dp_image_destroy(*ret);
		err = dp_error_nomem();
	}
	dp_buf_fini(&maps);
	if (err)
		return err;
	dp_image_started_as(*ret, c->args, c->comm);
	return put_vdso(c, *ret);
}

/* ---- queries ------------------------------------------------------------------------------------------------------------ */

static int by_tid(const void *a, const void *b)
{
	const struct dp_stopped_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct dp_error *dp_core_threads(const struct dp_core *c, struct dp_stopped_thread **ret, size_t *n)
{
	struct dp_stopped_thread *list = calloc(c->nthreads, sizeof(*list));
	if (!list)
		return dp_error_nomem();
	memcpy(list, c->thread, c->nthreads * sizeof(*list));
	list[0].is_fault = list[0].siginfo.si_signo && list[0].siginfo.si_signo != SIGSTOP;
	for (size_t i = 0; i < c->nthreads; i++)
		if (list[i].tid == c->pid)
			snprintf(list[i].name, sizeof(list[i].name), "%s", c->comm);
	qsort(list, c->nthreads, sizeof(*list), by_tid);
	*ret = list;
	*n = c->nthreads;
	return NULL;
}

pid_t dp_core_pid(const struct dp_core *c)
{
	return c->pid;
}

const char *dp_core_comm(const struct dp_core *c)
{
	return c->comm;
}

const char *dp_core_args(const struct dp_core *c)
{
	return c->args;
}
