/* SPDX-License-Identifier: MIT */
/* Maps the addresses of samples to the process's files; reads /proc only. */
#include "injector/perf/samples.h"

#include "injector/tracee/proc/proc.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define VDSO_MAX (64u << 10)

/* The vdso is in no file. If its bytes cannot be read, its frames have no names, and walks end there. */
static struct dp_error *add_vdso(struct dp_image *image, pid_t pid)
{
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *m = dp_image_map(image, i);
		const size_t size = m->end.v - m->start.v;
		if (strcmp(m->path, "[vdso]") != 0 || size > VDSO_MAX)
			continue;
		uint8_t *bytes = malloc(size);
		const struct iovec local = {bytes, size}, remote = {(void *)(uintptr_t)m->start.v, size};
		struct dp_error *err = NULL;
		if (bytes && process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
			err = dp_image_set_vdso(image, bytes, size);
		free(bytes);
		return err;
	}
	return NULL;
}

static struct dp_error *make(pid_t pid, const char *maps, const char *cache_dir, struct dp_image **ret, uint8_t **unwind)
{
	char root[32];
	size_t size;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	DP_TRY(dp_image_create(maps, root, (int)pid, ret));
	struct dp_error *err = add_vdso(*ret, pid);
	if (!err)
		err = dp_unwind_compile(*ret, cache_dir, dp_stack_effect, unwind, &size);
	if (err)
		*ret = dp_image_destroy(*ret);
	return err;
}

pid_t dp_samples_leader(pid_t tid)
{
	struct dp_buf b;
	dp_buf_init(&b);
	const pid_t leader =
	        dp_proc_slurp(&b, "/proc/%d/status", (int)tid) ? (pid_t)dp_status_long(dp_buf_str(&b), "Tgid", tid) : tid;
	dp_buf_fini(&b);
	return leader;
}

/* Finds a thread whose /proc entry describes the process: that of an exited first thread is empty. */
static pid_t alive(pid_t pid)
{
	struct dp_task_stat stat;
	struct dp_tids tids;
	pid_t found = pid;
	if (!dp_proc_stat(pid, 0, &stat) || stat.state != 'Z' || !dp_proc_tids(pid, &tids))
		return pid;
	for (size_t i = 0; found == pid && i < tids.n; i++)
		if (tids.tid[i] != pid && dp_proc_stat(pid, tids.tid[i], &stat) && stat.state != 'Z' && stat.state != 'X')
			found = tids.tid[i];
	free(tids.tid);
	return found;
}

struct dp_error *dp_samples_image(pid_t pid, const char *cache_dir, struct dp_image **image, uint8_t **unwind)
{
	struct dp_buf b;
	dp_buf_init(&b);
	const pid_t tid = alive(pid);
	struct dp_error *err =
	        dp_proc_slurp(&b, "/proc/%d/maps", (int)tid) && b.len
	                ? make(tid, dp_buf_str(&b), cache_dir, image, unwind)
	                : dp_error(DP_TAG_NO_PROCESS,
	                           "cannot read the mappings of process %d: it has ended, or belongs to another user", (int)pid);
	dp_buf_fini(&b);
	return err;
}

void dp_samples_comm(pid_t pid, char *ret, size_t n)
{
	dp_proc_comm(pid, ret, n);
}
