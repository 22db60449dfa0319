/* SPDX-License-Identifier: MIT */
/* A target whose text, on pages of its own, is replaced while it runs. */
#ifndef DP_TESTS_HELPER_SWAP_H
#define DP_TESTS_HELPER_SWAP_H

#include "helper_probe.h"

#include "injector/patch/replace/replace.h"
#include "injector/resident/resident.h"

#define SW_PAGES 12 /* each with one function, of which one crosses its page's end */
extern uint8_t sw_text[];
extern int sw_cross(void);
extern const uint8_t sw_one[5], sw_other[5]; /* the code to write: functions that return 0x01010101 or 0x02020202 */
uint64_t sw_at_cross(void);
/* Targets: three threads that call the function across two pages; one that calls the first page's. */
void sw_crossing(void);
void sw_alone(void);
/* Opens a process with one resident group. */
struct dp_target *sw_open_group(pid_t pid, const struct dp_installation **in);
struct dp_error *sw_write_one(struct dp_target *t, const struct dp_installation *in, uint64_t at, const uint8_t *bytes);
bool sw_holds(pid_t pid, uint64_t at, const uint8_t *bytes, size_t n);
/* Is the page this process's own copy? */
bool sw_is_copy(struct dp_target *t, uint64_t at);

#endif
