/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences (rseq(2)): a thread that is interrupted in one continues at its abort handler when it returns to user
 * code. If it returns to other code, such as ours, the kernel forgets the sequence, and the thread would finish it although other
 * threads have run.
 *
 * Since Linux 5.13 the kernel says which sequence a thread is in. Before that, we look in the module that contains its pc:
 * programs that follow librseq (such as tcmalloc) list their sequences in a section.
 */
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/stop/freeze.h"

#include "probes/probes.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

#define SEQUENCE_AT 8 /* in struct rseq of linux/rseq.h */

/* False if this kernel cannot tell. *abort is 0 if the thread is in no sequence. */
static bool ask_kernel(const struct dp_process *p, const struct dp_held *h, uint64_t *abort)
{
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} conf = {0};
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} cs;
	uint64_t at = 0;
	*abort = 0;
	const long got = ptrace(PTRACE_GET_RSEQ_CONFIGURATION, h->tid, (void *)sizeof(conf), &conf);
	if (got < 0 && errno == EIO)
		return false;
	if (got > 0 && conf.area && dp_mem_read(p, dp_addr_of(conf.area + SEQUENCE_AT), &at, sizeof(at)) == sizeof(at) && at &&
	    dp_mem_read(p, dp_addr_of(at), &cs, sizeof(cs)) == sizeof(cs) && h->regs.rip - cs.start < cs.length)
		*abort = cs.abort;
	return true;
}

uint64_t dp_rseq_of_file(const struct dp_process *p, uint64_t pc)
{
	char root[32];
	dp_auto_free char *maps = NULL;
	struct dp_image *image = NULL;
	dp_addr start, handler;
	uint64_t size, found = 0;
	snprintf(root, sizeof(root), "/proc/%d/root", p->alive);
	struct dp_error *err = dp_process_maps(p, &maps);
	if (!err)
		err = dp_image_create(maps, root, p->alive, &image);
	struct dp_module *m = err ? NULL : dp_image_module_at(image, dp_addr_of(pc));
	for (size_t i = 0; m && !found && dp_module_rseq(m, i, &start, &size); i += 2)
		if (pc - start.v < size && dp_module_rseq(m, i + 1, &handler, &size) && size)
			found = handler.v + size - 1; /* after its signature */
	dp_image_destroy(image);
	dp_error_destroy(err);
	return found;
}

void dp_rseq_abort(const struct dp_process *p, struct dp_held *h)
{
	uint64_t abort = 0;
	if (h->in_syscall_stop || (int64_t)h->regs.orig_rax >= 0) /* a sequence contains no system calls */
		return;
	if (!ask_kernel(p, h, &abort))
		abort = dp_rseq_of_file(p, h->regs.rip);
	if (abort)
		h->regs.rip = abort;
}
