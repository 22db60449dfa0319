/* SPDX-License-Identifier: MIT */
/*
 * Lines of system calls: the first two bytes choose the call, the next how long the entry's payload is; the rest are the payloads of its entry and
 * its exit, which begin with eight bytes for each argument. The memory behind arguments is what the target says.
 */
#include "output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MOST = 4 * DP_CALL_ARGS + 1 };
struct class {
	struct dp_field field[FIELDS_MOST];
	char name[FIELDS_MOST][64];
	struct dp_fields fields;
	struct dp_call_at at;
};

static void add(struct class *c, enum dp_type type, size_t size, const struct dp_call_arg *arg, const char *suffix)
{
	const size_t i = c->fields.n++;
	snprintf(c->name[i], sizeof(c->name[i]), "%.*s%s", (int)arg->len, arg->name, suffix);
	c->field[i] = (struct dp_field){.name = c->name[i], .type = type, .size = (uint32_t)size, .source = DP_SRC_REG};
}

static void make(struct class *c, int32_t nr, bool exit)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(nr, arg);
	*c = (struct class){.at = {.is = true, .exit = exit, .nr = nr}};
	c->fields.field = c->field;
	for (int i = 0; i < n; i++)
		add(c, DP_TYPE_UINT, 8, &arg[i], arg[i].kind == DP_CALL_STRING ? DP_CALL_ADDRESS : "");
	if (exit)
		add(c, DP_TYPE_INT, 8, &(struct dp_call_arg){.name = "retval", .len = 6}, "");
	for (int i = 0; i < n; i++) {
		if (arg[i].kind == DP_CALL_STRING)
			add(c, DP_TYPE_STRING, 64, &arg[i], "");
		if (dp_call_data_bytes(&arg[i]))
			add(c, DP_TYPE_BYTES, dp_call_data_bytes(&arg[i]), &arg[i], DP_CALL_DATA);
		if (dp_call_has_buffers(&arg[i]))
			add(c, DP_TYPE_BYTES, 33, &arg[i], DP_CALL_FIRST);
	}
}

static void write_events(const struct dp_event_class *classes, bool json, const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	struct dp_writer *w = NULL;
	struct dp_error *err = json ? dp_json_writer_create(to, classes, 2, &w) : dp_text_writer_create(to, false, classes, 2, &w);
	const size_t first = size ? data[0] % size : 0;
	if (!err && size) {
		dp_writer_event(w, &(struct dp_event){.ns = 1, .pid = 1, .tid = 1, .payload = data + 1, .len = first});
		dp_writer_event(w, &(struct dp_event){
		                           .ns = 2, .pid = 1, .tid = 1, .probe = 1, .payload = data + 1 + first, .len = size - 1 - first});
	}
	if (!err)
		err = dp_writer_close(w);
	dp_error_destroy(err);
	fclose(to);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct class made[2];
	if (size < 2)
		return 0;
	const int32_t nr = (data[0] | data[1] << 8) % DP_CALL_END;
	struct dp_event_class classes[2] = {0};
	for (int i = 0; i < 2; i++) {
		make(&made[i], nr, i);
		classes[i] = (struct dp_event_class){.name = "c", .spec = "c", .fields = &made[i].fields, .call = &made[i].at};
	}
	write_events(classes, false, data + 2, size - 2);
	write_events(classes, true, data + 2, size - 2);
	return 0;
}
