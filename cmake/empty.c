/* SPDX-License-Identifier: MIT */
/* The source of a room that has none yet. */
extern int dp_empty_room;
