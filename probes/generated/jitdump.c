/* SPDX-License-Identifier: MIT */
#include "probes/generated/jitdump.h"

#include <elf.h>
#include <string.h>

#define MAGIC       0x4a695444u
#define VERSION     1u
#define HEADER      40u
#define HEADER_MOST 4096u
#define RECORD      16u
#define LOAD        0u
#define NAME_AT     56u

static uint32_t number32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t number64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

/* A file of another byte order or machine has nothing that we know. */
static bool header_is_good(const uint8_t *at)
{
	const uint32_t size = number32(at + 8);
	return number32(at) == MAGIC && number32(at + 4) == VERSION && number32(at + 12) == EM_X86_64 && size >= HEADER &&
	       size <= HEADER_MOST;
}

/* The name ends at its 0, or is cut at what is there of it. A line break in it would be one in our output. */
static void add_code(struct dp_perf_names *names, const uint8_t *at, size_t n)
{
	char name[DP_PERF_NAME_MAX + 1];
	const size_t room = n - NAME_AT < sizeof(name) ? n - NAME_AT : sizeof(name);
	const size_t length = strnlen((const char *)at + NAME_AT, room);
	memcpy(name, at + NAME_AT, length);
	for (size_t i = 0; i < length; i++)
		if (name[i] == '\n' || name[i] == '\r')
			name[i] = ' ';
	dp_perf_names_put(names, number64(at + 32), number64(at + 40), name, length);
}

/* Returns the bytes of a header or record that are used now, all of it or as many as there are; 0: more are needed. */
static size_t use(struct dp_jitdump *d, struct dp_perf_names *names, const uint8_t *at, size_t n)
{
	if (n < (d->begun ? RECORD : HEADER))
		return 0;
	const uint32_t kind = number32(at), size = number32(at + (d->begun ? 4 : 8));
	if (d->begun ? size < RECORD : !header_is_good(at)) {
		d->damaged = true;
		return n;
	}
	const size_t here = size < n ? size : n;
	if (d->begun && kind == LOAD && size > NAME_AT) {
		if (here < size && here < DP_JITDUMP_NEEDED)
			return 0;
		add_code(names, at, here);
	}
	d->begun = true;
	d->skip = size - here;
	return here;
}

size_t dp_jitdump_add(struct dp_jitdump *d, struct dp_perf_names *names, const void *bytes, size_t n)
{
	size_t done = d->damaged ? n : d->skip < n ? (size_t)d->skip : n;
	if (!d->damaged)
		d->skip -= done;
	for (size_t used = 1; used && done < n; done += used)
		used = use(d, names, (const uint8_t *)bytes + done, n - done);
	return done;
}
