/* SPDX-License-Identifier: MIT */
/* Row numbers of dp_store_variable (file_table.c), for the code that reads and writes variables without the table. */
#ifndef DP_PMODULES_FILE_FILE_VARIABLE_H
#define DP_PMODULES_FILE_FILE_VARIABLE_H

#include "pmodules/model/snapshot.h"

enum {
	DP_FIELD_NAME = 1,
	DP_FIELD_TYPE,
	DP_FIELD_BASE_TYPE,
	DP_FIELD_KIND,
	DP_FIELD_STATE,
	DP_FIELD_PLACE,
	DP_FIELD_WHY,
	DP_FIELD_INDEX,
	DP_FIELD_ADDRESS,
	DP_FIELD_SIZE,
	DP_FIELD_NUMBER,
	DP_FIELD_REAL,
	DP_FIELD_IMAGINARY,
	DP_FIELD_IS_STRING,
	DP_FIELD_TEXT,
	DP_FIELD_IS_CUT,
	DP_FIELD_IS_SHARED = 23,
	DP_FIELD_BITS,
	DP_FIELD_SUMMARY,
	DP_FIELD_OBJECT,
	DP_FIELD_UNIT,
	DP_FIELD_NOTES,
	DP_FIELD_MORE,
	DP_FIELD_CHILDREN,
	DP_FIELD_MODULE,
	DP_FIELD_LAST = DP_FIELD_MODULE
};

/* IS_CUT to IS_SHARED, in the order of their numbers. */
enum { DP_FLAGS = DP_FIELD_IS_SHARED - DP_FIELD_IS_CUT + 1 };
#define DP_FLAGS_AT offsetof(struct dp_snap_variable, is_cut)
_Static_assert(offsetof(struct dp_snap_variable, is_shared) - DP_FLAGS_AT == DP_FLAGS - 1 && sizeof(bool) == 1,
               "the flags must be adjacent");

#endif
