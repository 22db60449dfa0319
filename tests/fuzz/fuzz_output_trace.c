/* SPDX-License-Identifier: MIT */
/*
 * Recorded traces. The first byte chooses what the rest is: 0 the classes, 1 the names, else a stream of a trace with classes of
 * all kinds of fields. Of a stream, each packet gets a valid magic number and UUID, so that more than the header is read.
 */
#include "output/trace/layout.h"
#include "output/trace/names.h"
#include "output/trace/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char classes[] =
        "{\"dynprobe\":1,\"uuid\":\"00000000000000000000000000000000\",\"clock_offset_ns\":0,\"classes\":["
        "{\"name\":\"a\",\"fields\":[{\"name\":\"i\",\"type\":0,\"size\":8}]},"
        "{\"name\":\"b\",\"fields\":[{\"name\":\"s\",\"type\":4,\"size\":20,\"may_fail\":true},{\"name\":\"u\",\"type\":1,"
        "\"size\":2}]},"
        "{\"name\":\"c\",\"fields\":[{\"name\":\"b\",\"type\":6,\"size\":8},{\"name\":\"r\",\"type\":5,\"size\":6}]},"
        "{\"name\":\"d\",\"format\":\"\\\"%5.2f %s\\\", f, "
        "s\",\"fields\":[{\"name\":\"f\",\"type\":2,\"size\":4},{\"name\":\"s\",\"type\":4,\"size\":9}]}]}";

static void ignore(const struct dp_field *field, const struct dp_field_value *value, void *data)
{
	(void)field;
	if (value->bytes && value->n)
		*(unsigned *)data += value->bytes[value->n - 1];
}

static void read_layout(const uint8_t *data, size_t size)
{
	struct dp_trace_layout l;
	struct dp_error *err = dp_trace_layout_parse((const char *)data, size, &l);
	for (unsigned i = 0; !err && i < l.n; i++)
		if (dp_fields_max_payload(l.class[i].fields) < dp_trace_layout_length(&l, i, data, 0) &&
		    dp_trace_layout_length(&l, i, data, 0) != SIZE_MAX)
			abort();
	if (!err)
		dp_trace_layout_fini(&l);
	dp_error_destroy(err);
}

static void read_names(const uint8_t *data, size_t size)
{
	struct dp_trace_names *n;
	struct dp_trace_thread t;
	uint64_t frames[4] = {0x10, 0x20, 0, 0x30};
	struct dp_error *err = dp_trace_names_parse((const char *)data, size, &n);
	if (!err) {
		dp_trace_names_find(n, 1, 1, 100, &t);
		if (t.image && dp_image_code_name(t.image, 0x10, false))
			dp_trace_names_mark(n, t.image, (uint8_t *)frames, 4);
		dp_trace_names_destroy(n);
	}
	dp_error_destroy(err);
}

static void repair(uint8_t *data, size_t size)
{
	static const uint32_t magic = DP_CTF_MAGIC;
	for (size_t at = 0; at + sizeof(struct dp_ctf_packet) <= size;) {
		struct dp_ctf_packet p;
		memcpy(data + at, &magic, sizeof(magic));
		memset(data + at + sizeof(magic), 0, sizeof(p.uuid) + sizeof(p.stream_id));
		memcpy(&p, data + at, sizeof(p));
		if (!p.packet_bits || p.packet_bits / 8 > size)
			break;
		at += p.packet_bits / 8;
	}
}

static void read_stream(const uint8_t *data, size_t size)
{
	static struct dp_trace_layout l;
	struct dp_trace_stream *s = NULL;
	struct dp_event e;
	uint64_t begin, end, last = 0;
	unsigned sum = 0;
	bool packet;
	uint8_t *copy = malloc(size + 1);
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (!l.n && dp_trace_layout_parse(classes, sizeof(classes) - 1, &l))
		abort();
	memcpy(copy, data, size);
	repair(copy, size);
	if (write(fd, copy, size) != (ssize_t)size || dp_trace_stream_open(fd, "events_1", &l, &s))
		abort();
	dp_trace_stream_bounds(s, &begin, &end);
	while (dp_trace_stream_next(s, &e, &packet)) {
		if (e.probe >= l.n || e.ns < last || !dp_fields_decode(l.class[e.probe].fields, e.payload, e.len, ignore, &sum))
			abort();
		last = e.ns;
	}
	dp_trace_stream_close(s);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (*data == 0)
		read_layout(data + 1, size - 1);
	else if (*data == 1)
		read_names(data + 1, size - 1);
	else
		read_stream(data + 1, size - 1);
	return 0;
}
