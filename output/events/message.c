/* SPDX-License-Identifier: MIT */
#include "output/events/message.h"

#include "agent/abi.h"
#include "output/format/put.h"
#include "probes/expr/syntax/printf_form.h"

#include <string.h>

struct values {
	const struct dp_event_class *class;
	struct dp_field_value arg[DP_PRINTF_ARGS];
	bool known[DP_PRINTF_ARGS];
};

static void remember(const struct dp_field *field, const struct dp_field_value *value, void *data)
{
	struct values *v = data;
	const size_t index = (size_t)(field - v->class->fields->field);
	for (size_t i = 0; i < v->class->form->n; i++)
		if (v->class->form->field[i] == index) {
			v->arg[i] = *value;
			v->known[i] = true;
		}
}

static void put_padded(struct dp_buf *b, const struct dp_conversion *c, const char *text, size_t n)
{
	const size_t width = c->width > 0 ? (size_t)c->width : 0;
	const bool left = strchr(c->flags, '-') != NULL;
	for (size_t i = n; !left && i < width; i++)
		dp_put_str(b, " ");
	dp_buf_put(b, text, n);
	for (size_t i = n; left && i < width; i++)
		dp_put_str(b, " ");
}

static void put_text(struct dp_buf *b, const struct dp_conversion *c, const struct dp_field *f, const struct dp_field_value *v)
{
	struct dp_buf text;
	dp_buf_init(&text);
	if (f->type == DP_TYPE_STRING)
		dp_buf_put(&text, v->bytes, v->n);
	else if (!dp_put_enumerator(&text, f->names, v->u))
		dp_put_signed(&text, (int64_t)v->u);
	const size_t most = c->precision >= 0 ? (size_t)c->precision : text.len;
	if (text.len)
		put_padded(b, c, dp_buf_str(&text), text.len < most ? text.len : most);
	else
		put_padded(b, c, "", 0);
	b->failed |= text.failed;
	dp_buf_fini(&text);
}

/* Formats a number with the field's width. */
static void put_number(struct dp_buf *b, const struct dp_conversion *c, const struct dp_field *f, const struct dp_field_value *v)
{
	char width[16] = "", precision[16] = "", format[64], text[640];
	const uint64_t u = f->size < 8 ? v->u & ((UINT64_C(1) << f->size * 8) - 1) : v->u;
	if (c->width >= 0)
		snprintf(width, sizeof(width), "%d", c->width);
	if (c->precision >= 0)
		snprintf(precision, sizeof(precision), ".%d", c->precision);
	snprintf(format, sizeof(format), "%%%s%s%s%s%c", c->flags, width, precision, c->letter == 'f' ? "" : "ll", c->letter);
	const int n = c->letter == 'f'   ? snprintf(text, sizeof(text), format, v->f)
	              : c->letter == 'd' ? snprintf(text, sizeof(text), format, (long long)v->u)
	                                 : snprintf(text, sizeof(text), format, (unsigned long long)u);
	dp_buf_put(b, text, n > 0 && (size_t)n < sizeof(text) ? (size_t)n : 0);
}

static void put_argument(struct dp_buf *b, const struct dp_conversion *c, const struct dp_field *f,
                         const struct dp_field_value *v)
{
	char text[32];
	if (v->is_null) {
		put_padded(b, c, DP_NULL_TEXT, strlen(DP_NULL_TEXT));
	} else if (v->unreadable) {
		dp_buf_printf(b, "<%s>", f->source == DP_SRC_NONE && f->absent ? f->absent : "unreadable");
	} else if (c->letter == 's') {
		put_text(b, c, f, v);
	} else if (c->letter == 'c') {
		text[0] = (char)v->u;
		put_padded(b, c, text, 1);
	} else if (c->letter == 'p') {
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v->u);
		put_padded(b, c, text, strlen(text));
	} else {
		put_number(b, c, f, v);
	}
}

void dp_put_message(struct dp_buf *b, const struct dp_event_class *class, const struct dp_decoder *d, const struct dp_event *e)
{
	struct values v = {.class = class};
	struct dp_conversion c;
	size_t k = 0;
	dp_decoder_run(d, e->payload, e->len, remember, &v);
	for (const char *p = class->form->format; *p; p++) {
		if (*p != '%') {
			dp_buf_put(b, p, 1);
			continue;
		}
		p += dp_printf_conversion(p, &c) - 1;
		if (c.letter == '%')
			dp_put_str(b, "%");
		else if (v.known[k])
			put_argument(b, &c, &class->fields->field[class->form->field[k]], &v.arg[k]);
		k += c.letter != '%';
	}
}

bool dp_message_has(const struct dp_event_class *class, const struct dp_field *field)
{
	for (size_t i = 0; class->form && i < class->form->n; i++)
		if (&class->fields->field[class->form->field[i]] == field)
			return true;
	return false;
}
