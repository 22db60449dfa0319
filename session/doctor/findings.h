/* SPDX-License-Identifier: MIT */
/* How the checks add their findings. */
#ifndef DP_SESSION_DOCTOR_FINDINGS_H
#define DP_SESSION_DOCTOR_FINDINGS_H

#include "session/doctor/doctor.h"

/* `remedy` may be NULL. */
void dp_find(struct dp_findings *to, const char *subject, enum dp_health health, const char *remedy, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
/* The finding that an error is; `health` says how bad it is. Takes the error. */
void dp_find_error(struct dp_findings *to, const char *subject, enum dp_health health, struct dp_error *err);

#endif
