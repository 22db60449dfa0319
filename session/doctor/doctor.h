/* SPDX-License-Identifier: MIT */
/*
 * What this machine, this user and a process allow, with the remedy for what they do not. The checks are those that attach makes.
 * Nothing is stopped or changed.
 */
#ifndef DP_SESSION_DOCTOR_DOCTOR_H
#define DP_SESSION_DOCTOR_DOCTOR_H

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum dp_health {
	DP_HEALTH_OK,
	DP_HEALTH_NOTE, /* works, with a limit or at a price */
	DP_HEALTH_NO,   /* does not work */
};

struct dp_finding {
	const char *subject; /* one word, the same in every language and version: ptrace_scope, attach */
	enum dp_health health;
	char *text;
	char *remedy;    /* or NULL */
	const char *tag; /* what attach would refuse with, or NULL */
};

struct dp_findings {
	struct dp_finding *item;
	size_t n;
	bool failed; /* out of memory: some are missing */
};

/* Adds what is known of the machine and this user. */
void dp_doctor_machine(struct dp_findings *to);
/* Adds what is known of the process; its name, for a title. False: attach would refuse it. */
bool dp_doctor_process(pid_t pid, struct dp_findings *to, char *name, size_t size);
void dp_findings_fini(struct dp_findings *findings);

#endif
