/* SPDX-License-Identifier: MIT */
/* Stands in for a room that has no source yet. */
extern int dp_empty_room;
