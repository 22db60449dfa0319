/* SPDX-License-Identifier: MIT */
/* The machine's boot: counts and clocks of one boot can be compared. */
#ifndef DP_BASE_BOOT_ID_H
#define DP_BASE_BOOT_ID_H

#define DP_BOOT_ID 37

/* /proc/sys/kernel/random/boot_id; "" if it is unknown. */
void dp_boot_id(char id[DP_BOOT_ID]);

#endif
