/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a trace, in LTTng's dialect: names of user fields get a leading underscore, which readers remove, so that they
 * cannot be keywords of the language. Sources: CTF specification 1.8.3, sections 4, 7 and C.
 */
#include "output/ctf/ctf.h"
#include "output/ctf/sidecar.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char preamble[] = "/* CTF 1.8 */\n\n"
                               "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
                               "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
                               "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
                               "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
                               "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
                               "typealias integer { size = 8; align = 8; signed = true; } := int8_t;\n"
                               "typealias integer { size = 16; align = 8; signed = true; } := int16_t;\n"
                               "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
                               "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
                               "typealias integer { size = 8; align = 8; signed = false; base = 16; } := xint8_t;\n"
                               "typealias integer { size = 16; align = 8; signed = false; base = 16; } := xint16_t;\n"
                               "typealias integer { size = 32; align = 8; signed = false; base = 16; } := xint32_t;\n"
                               "typealias integer { size = 64; align = 8; signed = false; base = 16; } := xint64_t;\n"
                               "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;\n"
                               "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float_t;\n"
                               "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double_t;\n\n";

static const char stream[] = "stream {\n"
                             "\tid = 0;\n"
                             "\tpacket.context := struct {\n"
                             "\t\ttime_t timestamp_begin;\n"
                             "\t\ttime_t timestamp_end;\n"
                             "\t\tuint64_t content_size;\n"
                             "\t\tuint64_t packet_size;\n"
                             "\t\tuint64_t packet_seq_num;\n"
                             "\t\tuint64_t events_discarded;\n"
                             "\t\tint32_t _vpid;\n"
                             "\t\tint32_t _vtid;\n"
                             "\t\tchar_t _procname[17];\n"
                             "\t};\n"
                             "\tevent.header := struct {\n"
                             "\t\tenum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n"
                             "\t\tvariant <id> {\n"
                             "\t\t\tstruct { time27_t timestamp; } compact;\n"
                             "\t\t\tstruct { uint32_t id; time_t timestamp; } extended;\n"
                             "\t\t} v;\n"
                             "\t} align(8);\n"
                             "};\n";

static void put_uuid(struct dp_buf *b, const uint8_t uuid[16])
{
	for (size_t i = 0; i < 16; i++)
		dp_buf_printf(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* A string literal. Other characters than printable ASCII become '?', because readers disagree about escapes. */
static void put_literal(struct dp_buf *b, const char *s)
{
	dp_put_str(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			dp_put_str(b, "\\");
		dp_buf_put(b, c >= 0x20 && c < 0x7f ? s : "?", 1);
	}
	dp_put_str(b, "\"");
}

static void put_trace(struct dp_buf *b, const uint8_t uuid[16])
{
	dp_put_str(b, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"");
	put_uuid(b, uuid);
	dp_put_str(b, "\";\n\tbyte_order = le;\n\tpacket.header := struct {\n"
	              "\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t\tuint64_t "
	              "stream_instance_id;\n\t};\n};\n\n");
}

/* The specs of the probes are stored here as probe_NAME. */
static void put_env(struct dp_buf *b, const struct dp_event_class *classes, size_t n)
{
	char host[256] = "", date[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	gethostname(host, sizeof(host) - 1);
	if (gmtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y%m%dT%H%M%S+0000", &tm);
	dp_put_str(b, "env {\n\thostname = ");
	put_literal(b, host);
	dp_put_str(b, ";\n\tdomain = \"ust\";\n\ttracer_name = \"dynprobe\";\n\ttracer_major = 0;\n\ttracer_minor = 1;\n"
	              "\ttracer_patchlevel = 0;\n\ttrace_creation_datetime = ");
	put_literal(b, date);
	dp_put_str(b, ";\n");
	for (size_t i = 0; i < n; i++) {
		dp_buf_printf(b, "\tprobe_%s = ", classes[i].name);
		put_literal(b, classes[i].spec ? classes[i].spec : "");
		dp_put_str(b, ";\n");
	}
	dp_put_str(b, "};\n\n");
}

static void put_clock(struct dp_buf *b)
{
	char boot[37];
	int64_t offset = dp_clock_offset(), second = 1000000000;
	if (offset < 0)
		offset = 0;
	dp_clock_boot(boot);
	dp_put_str(b, "clock {\n\tname = \"monotonic\";\n");
	if (boot[0])
		dp_buf_printf(b, "\tuuid = \"%s\";\n", boot);
	dp_buf_printf(b, "\tdescription = \"CLOCK_MONOTONIC\";\n\tfreq = %" PRId64 ";\n", second);
	dp_buf_printf(b, "\toffset_s = %" PRId64 ";\n\toffset = %" PRId64 ";\n", offset / second, offset % second);
	dp_put_str(b,
	           "\tabsolute = TRUE;\n};\n\n"
	           "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;\n"
	           "typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := time27_t;\n\n");
}

/* Names are quoted, because some are keywords of this language. */
static void put_enumeration(struct dp_buf *b, const struct dp_field *f)
{
	dp_buf_printf(b, "\t\tenum : %sint%u_t {", f->type == DP_TYPE_INT ? "" : "u", f->size * 8u);
	for (size_t i = 0; i < f->names->n; i++) {
		dp_put_str(b, i ? ", " : " ");
		put_literal(b, f->names->item[i].name);
		dp_put_str(b, " = ");
		if (f->type == DP_TYPE_INT)
			dp_put_signed(b, (int64_t)f->names->item[i].value);
		else
			dp_put_dec(b, f->names->item[i].value);
	}
	dp_buf_printf(b, " } _%s;\n", f->name);
}

static void put_field(struct dp_buf *b, const struct dp_field *f)
{
	unsigned bits = f->size * 8u;
	if (f->names && f->names->n && (f->type == DP_TYPE_INT || f->type == DP_TYPE_UINT)) {
		put_enumeration(b, f);
		return;
	}
	dp_put_str(b, "\t\t");
	switch (f->type) {
	case DP_TYPE_INT:
		dp_buf_printf(b, "int%u_t _%s;\n", bits, f->name);
		break;
	case DP_TYPE_UINT:
	case DP_TYPE_POINTER:
		dp_buf_printf(b, "%s%u_t _%s;\n", f->hex || f->type == DP_TYPE_POINTER ? "xint" : "uint", bits, f->name);
		break;
	case DP_TYPE_FLOAT:
		dp_buf_printf(b, "%s _%s;\n", f->size == sizeof(float) ? "float_t" : "double_t", f->name);
		break;
	case DP_TYPE_STRING:
		dp_buf_printf(b, "string _%s;\n", f->name);
		break;
	case DP_TYPE_BYTES: /* readers support no numbers wider than 64 bits */
		if (f->display == DP_DISPLAY_LONG_DOUBLE)
			dp_buf_printf(b, "struct { xint64_t mantissa; xint16_t sign_exponent; xint8_t padding[6]; } _%s;\n",
			              f->name);
		else if (dp_display_is_wide(f->display))
			dp_buf_printf(b, "struct { xint64_t low; %sint64_t high; } _%s;\n",
			              f->display == DP_DISPLAY_INT128 ? "" : "u", f->name);
		else
			dp_buf_printf(b, "xint8_t _%s[%u];\n", f->name, f->size);
		break;
	case DP_TYPE_BACKTRACE:
		dp_buf_printf(b, "uint8_t __%s_length;\n\t\txint64_t _%s[__%s_length];\n", f->name, f->name, f->name);
		break;
	}
}

static void put_event(struct dp_buf *b, const struct dp_event_class *class, size_t id)
{
	dp_buf_printf(b, "\nevent {\n\tname = \"dynprobe:%s\";\n\tid = %zu;\n\tstream_id = 0;\n\tfields := struct {\n",
	              class->name, id);
	if (dp_fields_may_fault(class->fields))
		dp_put_str(b, "\t\txint64_t __unreadable;\n");
	for (size_t i = 0; i < class->fields->n; i++)
		put_field(b, &class->fields->field[i]);
	dp_put_str(b, "\t};\n};\n");
}

void dp_ctf_metadata(struct dp_buf *b, const uint8_t uuid[16], const struct dp_event_class *classes, size_t n)
{
	dp_put_str(b, preamble);
	put_trace(b, uuid);
	put_env(b, classes, n);
	put_clock(b);
	dp_put_str(b, stream);
	for (size_t i = 0; i < n; i++)
		put_event(b, &classes[i], i);
}
