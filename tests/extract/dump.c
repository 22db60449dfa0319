/* SPDX-License-Identifier: MIT */
/*
 * dump PID [rehearse]: stops all threads of a process, extracts their frames with all variables, prints them, and resumes the
 * threads. The tab-separated lines are for tests/extract/compare.py:
 *   T tid
 *   F index inline pc symbol path line
 *   V parameter? name value
 *   M microseconds frames variables          (the time of the extraction)
 */
#include "pmodules/capture/extract.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <utlist.h>

enum { THREADS = 256 };
static pid_t target;
static struct dp_stopped_thread thread[THREADS];
static size_t nthreads;

static void fail(const char *what)
{
	fprintf(stderr, "dump: %s\n", what);
	exit(1);
}

static void check(struct dp_error *err)
{
	if (err)
		fail(err->message);
}

static size_t read_target(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)addr, n};
	(void)late;
	(void)data;
	const ssize_t got = process_vm_readv(target, &local, 1, &remote, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

static char *slurp(const char *path)
{
	size_t size = 1 << 22, n;
	char *text = malloc(size);
	FILE *f = fopen(path, "re");
	if (!f || !text)
		fail(path);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void stop(pid_t tid)
{
	struct dp_stopped_thread *t = &thread[nthreads];
	struct user_fpregs_struct fp;
	int status;
	if (nthreads == THREADS || ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
	    waitpid(tid, &status, __WALL) != tid)
		fail("cannot stop a thread");
	*t = (struct dp_stopped_thread){.tid = tid, .state = 'S', .syscall = -1};
	if (ptrace(PTRACE_GETREGS, tid, 0, &t->regs))
		fail("no registers");
	if (!ptrace(PTRACE_GETFPREGS, tid, 0, &fp)) {
		t->has_vector = true;
		memcpy(t->xmm, fp.xmm_space, sizeof(t->xmm));
	}
	nthreads++;
}

static void stop_all(void)
{
	char path[64];
	struct dirent *e;
	snprintf(path, sizeof(path), "/proc/%d/task", target);
	DIR *d = opendir(path);
	if (!d)
		fail("no such process");
	while ((e = readdir(d)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]))
			stop(atoi(e->d_name));
	closedir(d);
}

static void set_vdso(struct dp_image *image, const char *maps)
{
	static uint8_t bytes[1 << 16];
	const char *line = strstr(maps, "[vdso]");
	unsigned long start, end;
	while (line && line > maps && line[-1] != '\n')
		line--;
	if (line && sscanf(line, "%lx-%lx", &start, &end) == 2 && end - start <= sizeof(bytes) &&
	    read_target(start, bytes, end - start, NULL, NULL) == end - start)
		check(dp_image_set_vdso(image, bytes, end - start));
}

/* ---- printing ----------------------------------------------------------------------------------------------------------- */

static void text(const char *s, size_t n)
{
	while (n && !s[n - 1])
		n--;
	putchar('"');
	for (size_t i = 0; i < n; i++)
		if (isprint((unsigned char)s[i]) && s[i] != '"' && s[i] != '\\')
			putchar(s[i]);
		else
			printf("\\%03o", (unsigned char)s[i]);
	putchar('"');
}

static void value(const struct dp_snap_variable *v);

static void children(const struct dp_snap_variable *v)
{
	const struct dp_snap_variable *c;
	putchar('{');
	DL_FOREACH(v->children, c)
	{
		if (c != v->children)
			printf(", ");
		if (v->kind == DP_VAR_TUPLE)
			printf("%s = ", c->kind == DP_VAR_TUPLE && *c->name && !strcmp(c->name, c->base_type) ? "base" : c->name);
		value(c);
	}
	if (v->more)
		printf("...");
	putchar('}');
}

static void value(const struct dp_snap_variable *v)
{
	if (v->state != DP_VAR_OK) {
		printf("<%s>", v->why);
		return;
	}
	switch (v->kind) {
	case DP_VAR_LL:
		if (v->is_bool && v->number < 2)
			printf("%s", v->number ? "true" : "false");
		else if (v->text)
			printf("%s", v->text);
		else
			printf("%" PRId64, (int64_t)v->number);
		break;
	case DP_VAR_ULL:
		if (v->text)
			printf("%s", v->text);
		else
			printf("%" PRIu64, v->number);
		break;
	case DP_VAR_FLT:
		printf("%.9g", v->real);
		break;
	case DP_VAR_DBL:
		printf("%.17g", v->real);
		break;
	case DP_VAR_CFLT:
	case DP_VAR_CDBL:
		printf("%.17g + %.17gi", v->real, v->imaginary);
		break;
	case DP_VAR_STRING:
		text(v->text ? v->text : "", v->text ? v->text_size : 0);
		break;
	case DP_VAR_ENUM:
		if (v->text)
			printf("%s", v->text);
		else
			printf("%" PRId64, (int64_t)v->number);
		break;
	case DP_VAR_TUPLE:
	case DP_VAR_ARRAY:
		children(v);
		break;
	case DP_VAR_REFERENCE:
		printf("0x%" PRIx64, v->number);
		break;
	default:
		printf("%s", v->text ? v->text : "?");
	}
}

static unsigned count(const struct dp_snap_variable *list)
{
	unsigned n = 0;
	const struct dp_snap_variable *v;
	DL_FOREACH(list, v)
	n += 1 + count(v->children);
	return n;
}

static void print(const struct dp_snapshot *s)
{
	const struct dp_snap_thread *t;
	const struct dp_snap_frame *f;
	const struct dp_snap_variable *v;
	DL_FOREACH(s->threads, t)
	{
		printf("T\t%d\t%s\n", t->tid, t->unwind_end ? t->unwind_end : "");
		DL_FOREACH(t->frames, f)
		{
			printf("F\t%u\t%d\t%" PRIx64 "\t%s\t%s\t%d\n", f->index, f->is_inline ? 1 : f->is_tail ? 2 : 0, f->pc,
			       f->symbol ? f->symbol : "??", f->path ? f->path : "", f->line);
			DL_FOREACH(f->variables, v)
			{
				printf("V\t%d\t%s\t", v->place == DP_VAR_PARAMETER, v->name);
				value(v);
				putchar('\n');
			}
		}
	}
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void measure(const struct dp_snapshot *s, uint64_t us)
{
	const struct dp_snap_thread *t;
	const struct dp_snap_frame *f;
	unsigned frames = 0, variables = 0;
	DL_FOREACH(s->threads, t)
	DL_FOREACH(t->frames, f)
	{
		frames++;
		variables += count(f->variables);
	}
	fprintf(stderr, "M\t%" PRIu64 "\t%u\t%u\t%zu\n", us, frames, variables, s->arena.total);
}

int main(int argc, char **argv)
{
	char path[64];
	struct dp_image *image;
	struct dp_debug_ctx *w;
	struct dp_extract *x;
	struct dp_snapshot *s = dp_snapshot_create();
	target = argc > 1 ? atoi(argv[1]) : 0;
	if (target <= 0 || !s)
		fail("usage: dump PID [rehearse]");
	stop_all();
	snprintf(path, sizeof(path), "/proc/%d/maps", target);
	char *maps = slurp(path);
	check(dp_image_create(maps, "", target, &image));
	set_vdso(image, maps);
	check(dp_debug_ctx_create(image, read_target, NULL, &w));
	check(dp_extract_create(w, NULL, &x));
	for (size_t i = 0; argc > 2 && i < nthreads; i++)
		dp_extract_rehearse(x, &thread[i]);
	const uint64_t start = now();
	for (size_t i = 0; i < nthreads; i++)
		if (!dp_extract_thread(x, &thread[i], s))
			fail("a thread cannot be extracted");
	measure(s, now() - start);
	print(s);
	for (size_t i = 0; i < nthreads; i++)
		ptrace(PTRACE_DETACH, thread[i].tid, 0, 0);
	dp_extract_destroy(x);
	dp_debug_ctx_destroy(w);
	dp_image_destroy(image);
	dp_snapshot_destroy(s);
	free(maps);
	return 0;
}
