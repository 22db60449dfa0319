/* SPDX-License-Identifier: MIT */
/* Capabilities and users by name, for messages. */
#ifndef DP_INJECTOR_TRACEE_PROC_CAPABILITIES_H
#define DP_INJECTOR_TRACEE_PROC_CAPABILITIES_H

#include <stddef.h>
#include <stdint.h>

/* The set that a line of /proc/PID/status has (CapEff, CapPrm); 0 if it has no such line. `status`: the file's text. */
uint64_t dp_capabilities_of(const char *status, const char *line);
/* "CAP_SYS_PTRACE, CAP_SYS_ADMIN and 3 more"; the first few, those that tracing needs before the others; "none". */
const char *dp_capabilities_text(uint64_t set, char *ret, size_t n);
/* "root (uid 0)"; "uid 4711" if it has no name. */
const char *dp_user_text(long uid, char *ret, size_t n);

#endif
