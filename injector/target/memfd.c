/* SPDX-License-Identifier: MIT */
/*
 * With vm.memfd_noexec=1 an executable memfd needs the flag MFD_EXEC; kernels before 6.3 do not know it. With 2, execve(2) must
 * not run a memfd. One with MFD_NOEXEC_SEAL can still be mapped executable, which the setting does not restrict.
 */
#include "injector/target/memfd.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

struct dp_error *dp_remote_memfd(struct dp_borrow *b, uint64_t room, uint64_t name, struct dp_opening *o, int64_t *fd)
{
	static const unsigned kind[] = {MFD_EXEC, 0, MFD_NOEXEC_SEAL};
	struct dp_error *err = NULL;
	for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
		o->name = "memfd_create";
		o->make = (struct dp_step){.nr = SYS_memfd_create, .args = {name, MFD_CLOEXEC | kind[i]}};
		dp_error_destroy(err);
		err = dp_remote_open(b, room, o, fd);
		if (!err || (err->sys != EINVAL && err->sys != EACCES))
			break;
	}
	return err;
}
