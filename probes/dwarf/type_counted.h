/* SPDX-License-Identifier: MIT */
/* Strings that carry their length: {data, len} of C, std::string and string_view, Rust's &str and String, Go's string. */
#ifndef DP_PROBES_DWARF_TYPE_COUNTED_H
#define DP_PROBES_DWARF_TYPE_COUNTED_H

#include "probes/dwarf/type.h"

struct dp_counted {      /* where its parts are, in bytes from the record's start */
	uint64_t data;   /* a pointer to the first byte */
	uint64_t length; /* in bytes: an integer of `size` bytes */
	uint8_t size;
	bool is_signed;
};
/* True if the record is a string by its members' names and types. */
bool dp_ctype_counted(const struct dp_ctype *record, struct dp_counted *ret);

#endif
