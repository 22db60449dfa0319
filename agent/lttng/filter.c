/* SPDX-License-Identifier: MIT */
/*
 * Operands for LTTng's filters and captures: one for each field, in order, laid out like those of the code that
 * <lttng/tracepoint-event.h> generates: integers widened to 64 bits, floats to double, strings as a pointer, arrays and sequences
 * as length and pointer. Fields marked nofilter (a sequence's length) have none.
 */
#include "agent/lttng/event.h"

#include <string.h>

static uint64_t load_uint(const uint8_t *from, uint32_t size)
{
	uint64_t value = 0;
	memcpy(&value, from, size);
	return value;
}

static uint64_t load_int(const uint8_t *from, uint32_t size)
{
	const unsigned spare = 64 - 8 * size;
	return (uint64_t)((int64_t)(load_uint(from, size) << spare) >> spare);
}

static uint64_t load_float(const uint8_t *from, uint32_t size)
{
	uint64_t bits;
	float single;
	double value;
	if (size == sizeof(double))
		return load_uint(from, size);
	memcpy(&single, from, sizeof(single));
	value = (double)single;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint64_t address(const uint8_t *p)
{
	return (uint64_t)(uintptr_t)p;
}

void dp_lttng_operands(const struct dp_lttng_event *event, const uint8_t *p, uint64_t *to)
{
	if (event->mask) {
		*to++ = load_uint(p, DP_MASK_BYTES);
		p += DP_MASK_BYTES;
	}
	for (const struct dp_sink_field *f = event->fields; f < event->fields + event->nfields; f++) {
		uint32_t size = f->size;
		switch ((enum dp_sink_type)f->type) {
		case DP_SINK_INT:
			*to++ = load_int(p, size);
			break;
		case DP_SINK_UINT:
			*to++ = load_uint(p, size);
			break;
		case DP_SINK_FLOAT:
			*to++ = load_float(p, size);
			break;
		case DP_SINK_STRING:
			*to++ = address(p);
			size = (uint32_t)strlen((const char *)p) + 1;
			break;
		case DP_SINK_BYTES:
			*to++ = size;
			*to++ = address(p);
			break;
		case DP_SINK_BACKTRACE:
			*to++ = *p;
			*to++ = address(p + 1);
			size = 1 + 8u * *p;
			break;
		}
		p += size;
	}
}
