/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the snapshot file's decoder: table-driven records (file_decode.c) and variables (file_variable_read.c).
 */
#ifndef DP_PMODULES_FILE_FILE_DECODE_INTERNAL_H
#define DP_PMODULES_FILE_FILE_DECODE_INTERNAL_H

#include "pmodules/file/file_internal.h"

struct dp_file_reader {
	struct dp_snapshot *s;
	const struct dp_file_texts *texts;
	const char *section;
	const uint8_t *start;
};

/* The position in the model. */
struct dp_file_place {
	struct dp_snap_thread *thread;
	struct dp_snap_frame *frame;
	struct dp_snap_variable *owner;
	unsigned depth;
};

struct dp_file_span {
	const uint8_t *p, *end;
};

struct dp_file_field {
	unsigned number;
	enum dp_wire wire;
	uint64_t value;           /* of numbers */
	struct dp_file_span span; /* of bytes */
};

struct dp_error *dp_file_bad(const struct dp_file_reader *r, const uint8_t *p, const char *what) DP_MUST_CHECK;
/* Decodes the field at in->p and advances past it. */
struct dp_error *dp_file_field(struct dp_file_reader *r, struct dp_file_span *in, struct dp_file_field *f) DP_MUST_CHECK;
/* Looks up a text by its number. Number 0 gives a text without bytes. */
struct dp_error *dp_file_text_of(struct dp_file_reader *r, uint64_t number, const struct dp_file_text **ret) DP_MUST_CHECK;
/* Appends an element to the list at `offset` of `obj`. */
struct dp_error *dp_file_take_element(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                      const struct dp_file_place *at, void *obj) DP_MUST_CHECK;
/* file_variable_read.c: `v` comes from the arena. */
struct dp_error *dp_file_decode_variable(struct dp_file_reader *r, const struct dp_file_field *f, const struct dp_file_place *at,
                                         struct dp_snap_variable *v) DP_MUST_CHECK;

/* False: longer than 64 bits, or not terminated within `in`. */
static inline bool dp_file_get_varint(struct dp_file_span *in, uint64_t *ret)
{
	if (in->p < in->end && *in->p < 0x80) {
		*ret = *in->p++;
		return true;
	}
	*ret = 0;
	for (unsigned shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		const uint8_t byte = *in->p++;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

#endif
