/* SPDX-License-Identifier: MIT */
/*
 * Snapshot files: the reader refuses any bytes, or returns a snapshot that can be written and read again without a difference.
 * The first byte says whether the rest is a whole file (the checksums are not verified here), or the uncompressed sections of
 * one: HEAD, THRD, ... in turn, each after its length in two bytes.
 */
#include "pmodules/file/file_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_section(struct dp_buf *file, size_t i, uint32_t tag, size_t at, size_t n)
{
	const struct dp_file_section s = {.tag = tag, .offset = at, .size = n, .raw = n};
	memcpy(file->data + sizeof(struct dp_file_header) + i * sizeof(s), &s, sizeof(s));
}

static void wrap(struct dp_buf *file, const uint8_t *data, size_t size)
{
	enum { SECTIONS = 7 };
	struct dp_file_header h = {.version = DP_FILE_VERSION};
	memcpy(h.magic, DP_FILE_MAGIC, sizeof(h.magic));
	dp_buf_grow(file, sizeof(h) + SECTIONS * sizeof(struct dp_file_section));
	for (; h.nsections < SECTIONS && size >= 2; h.nsections++) {
		size_t n = data[0] | (size_t)data[1] << 8;
		n = n < size - 2 ? n : size - 2;
		const size_t at = file->len;
		dp_buf_put(file, data + 2, n);
		put_section(file, h.nsections, h.nsections ? dp_store_section[h.nsections - 1].tag : DP_FILE_STRINGS, at, n);
		data += 2 + n;
		size -= 2 + n;
	}
	memcpy(file->data, &h, sizeof(h));
}

static void write_and_read_again(struct dp_snapshot *s)
{
	struct dp_snapshot *back = NULL;
	struct dp_buf one = {0}, two = {0};
	struct dp_error *err = dp_snapshot_write_bytes(s, &one);
	if (!err && ((err = dp_snapshot_read_bytes(one.data, one.len, &back)) || (err = dp_snapshot_write_bytes(back, &two)) ||
	             one.len != two.len || memcmp(one.data, two.data, one.len)))
		abort();
	dp_error_destroy(err);
	dp_buf_fini(&one);
	dp_buf_fini(&two);
	dp_snapshot_destroy(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_buf file = {0};
	struct dp_snapshot *s = NULL;
	if (!size)
		return 0;
	if (data[0] & 1)
		dp_buf_put(&file, data + 1, size - 1);
	else
		wrap(&file, data + 1, size - 1);
	struct dp_error *err = dp_snapshot_read_bytes(file.data, file.len, &s);
	if (!err)
		write_and_read_again(s);
	dp_error_destroy(err);
	dp_snapshot_destroy(s);
	dp_buf_fini(&file);
	return 0;
}
