/* SPDX-License-Identifier: MIT */
/* Files whose names come from others: a name may be a device's, and opening one may be an action (a tape, a watchdog, a modem). */
#ifndef DP_BASE_REGULAR_H
#define DP_BASE_REGULAR_H

/* A descriptor to read a regular file from, close-on-exec; -1 and errno: ENXIO for what is another kind of file, which is not opened. */
int dp_open_regular(const char *path);

#endif
