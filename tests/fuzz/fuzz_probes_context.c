/* SPDX-License-Identifier: MIT */
/* Contexts and payloads: lines of -t arguments, an empty line, then the bytes of a payload for that table. */
#include "agent/abi.h"
#include "probes/probes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	volatile uint64_t *sum = data;
	size_t n = v->n * (field->type == DP_TYPE_BACKTRACE ? sizeof(uint64_t) : 1) + (field->type == DP_TYPE_STRING);
	for (size_t i = 0; v->bytes && i < n; i++)
		*sum += v->bytes[i];
	*sum += v->u;
}

/* Adds one line; returns its length. */
static size_t add_line(struct dp_fields *fields, const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size, before = fields->n;
	char *text = strndup((const char *)data, len);
	struct dp_error *err = text ? dp_fields_add(fields, text) : NULL;
	if (err && fields->n != before)
		abort();
	dp_error_destroy(err);
	free(text);
	return len + (end ? 1 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_fields fields = {0};
	volatile uint64_t sum = 0;
	size_t at = 0;
	while (at < size && data[at] != '\n')
		at += add_line(&fields, data + at, size - at);
	if (at < size)
		at++;
	if (dp_fields_max_payload(&fields) > DP_RECORD_MAX - sizeof(struct dp_record))
		abort();
	/* An exact copy, so that a sanitizer sees a read past the end. */
	uint8_t *payload = malloc(size - at + 1);
	if (payload) {
		memcpy(payload, data + at, size - at);
		payload = realloc(payload, size - at ? size - at : 1);
		bool ok = dp_fields_decode(&fields, payload, size - at, touch, (void *)&sum);
		if (ok != (dp_fields_payload_length(&fields, payload, size - at) != SIZE_MAX))
			abort();
	}
	free(payload);
	dp_fields_fini(&fields);
	return 0;
}
