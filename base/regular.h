/* SPDX-License-Identifier: MIT */
/* Opens files with untrusted names: a name may be a device's, and opening a device may be an action (tape, watchdog, modem). */
#ifndef DP_BASE_REGULAR_H
#define DP_BASE_REGULAR_H

/* Opens a regular file for reading, close-on-exec. Returns -1 and sets errno on failure; ENXIO: not a regular file. */
int dp_open_regular(const char *path);

#endif
