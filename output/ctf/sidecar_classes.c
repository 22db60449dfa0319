/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "output/ctf/sidecar.h"
#include "output/format/put.h"
#include "probes/expr/syntax/printf_form.h"

#include <ctype.h>

static void put_key(struct dp_buf *b, const char *before, const char *key)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

static void put_text(struct dp_buf *b, const char *key, const char *text)
{
	if (text)
		dp_put_json_member(b, ",", key, text);
}

static void put_flag(struct dp_buf *b, const char *key, bool is)
{
	if (!is)
		return;
	put_key(b, ",", key);
	dp_put_str(b, "true");
}

static void put_names(struct dp_buf *b, const struct dp_enumeration *names)
{
	if (!names)
		return;
	put_flag(b, "flags", names->flags);
	put_key(b, ",", "names");
	dp_put_str(b, "[");
	for (size_t i = 0; i < names->n; i++) {
		dp_put_str(b, i ? ",[" : "[");
		dp_put_json_str(b, names->item[i].name);
		dp_put_str(b, ",");
		dp_put_signed(b, (int64_t)names->item[i].value);
		dp_put_str(b, "]");
	}
	dp_put_str(b, "]");
}

static void put_field(struct dp_buf *b, const struct dp_field *f)
{
	dp_put_json_member(b, "{", "name", f->name);
	put_text(b, "label", f->label);
	put_key(b, ",", "type");
	dp_put_dec(b, f->type);
	put_key(b, ",", "size");
	dp_put_dec(b, f->size);
	put_key(b, ",", "display");
	dp_put_dec(b, f->display);
	put_flag(b, "hex", f->hex);
	put_flag(b, "may_fail", dp_field_may_fault(f));
	if (f->source == DP_SRC_NONE)
		put_text(b, "absent", f->absent ? f->absent : "");
	put_names(b, f->names);
	dp_put_str(b, "}");
}

static void put_class(struct dp_buf *b, const struct dp_event_class *class)
{
	dp_put_json_member(b, "{", "name", class->name);
	put_text(b, "title", class->title);
	put_text(b, "spec", class->spec);
	put_text(b, "format", class->form ? class->form->text : NULL);
	put_key(b, ",", "fields");
	dp_put_str(b, "[");
	for (size_t i = 0; i < class->fields->n; i++) {
		dp_put_str(b, i ? ",\n  " : "\n  ");
		put_field(b, &class->fields->field[i]);
	}
	dp_put_str(b, "]}");
}

/* LTTng identifies its clock by the boot ID, so traces of one boot share it. */
void dp_boot_id(char id[37])
{
	dp_auto_fclose FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n = f ? fread(id, 1, 36, f) : 0;
	id[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? id[i] != '-' : !isxdigit((unsigned char)id[i]))
			n = 0;
	if (n != 36)
		id[0] = '\0';
}

void dp_sidecar_put_classes(struct dp_buf *b, const struct dp_sidecar_of *of)
{
	char boot[37];
	dp_boot_id(boot);
	dp_buf_printf(b, "{\"dynprobe\":%d,\"uuid\":\"", DP_SIDECAR_VERSION);
	for (size_t i = 0; i < 16; i++)
		dp_buf_printf(b, "%02x", of->uuid[i]);
	dp_put_str(b, "\",\"clock_offset_ns\":");
	dp_put_signed(b, dp_clock_offset());
	dp_put_json_member(b, ",", "boot", boot);
	put_key(b, ",", "classes");
	dp_put_str(b, "[");
	for (size_t i = 0; i < of->n; i++) {
		dp_put_str(b, i ? ",\n " : "\n ");
		put_class(b, &of->classes[i]);
	}
	dp_put_str(b, "]}\n");
}
