/* SPDX-License-Identifier: MIT */
/* Decodes variables. Does what file_decode.c does for everything else, but without a table, since there are so many. */
#include "pmodules/file/file_decode_internal.h"
#include "pmodules/file/file_variable.h"

/* The wire type of each field. */
static const uint8_t wire_of[] = {[DP_FIELD_REAL] = DP_WIRE_8,
                                  [DP_FIELD_IMAGINARY] = DP_WIRE_8,
                                  [DP_FIELD_NOTES] = DP_WIRE_BYTES,
                                  [DP_FIELD_CHILDREN] = DP_WIRE_BYTES,
                                  [DP_FIELD_LAST] = DP_WIRE_VARINT};

static struct dp_error *take_text(struct dp_file_reader *r, struct dp_snap_variable *v, unsigned number, uint64_t value)
{
	const struct dp_file_text *t = NULL;
	DP_TRY(dp_file_text_of(r, value, &t));
	const char *text = value ? r->texts->bytes + t->at : NULL, *known = text ? text : "";
	switch (number) {
	case DP_FIELD_NAME:
		v->name = known;
		break;
	case DP_FIELD_TYPE:
		v->type = known;
		break;
	case DP_FIELD_BASE_TYPE:
		v->base_type = known;
		break;
	case DP_FIELD_OBJECT:
		v->object = known;
		break;
	case DP_FIELD_UNIT:
		v->unit = known;
		break;
	case DP_FIELD_WHY:
		v->why = text;
		break;
	case DP_FIELD_SUMMARY:
		v->summary = text;
		break;
	case DP_FIELD_MODULE:
		v->module = text;
		break;
	default:
		v->text = text;
		v->text_size = t->n;
	}
	return NULL;
}

/* Replaces unknown values, from a newer writer. */
static int known(uint64_t value, int last, int else_)
{
	return value <= (unsigned)last ? (int)value : else_;
}

static void take_flag(struct dp_snap_variable *v, unsigned number, bool is)
{
	memcpy((char *)v + DP_FLAGS_AT + (number - DP_FIELD_IS_CUT), &is, sizeof(is));
}

static struct dp_error *take_value(struct dp_file_reader *r, struct dp_snap_variable *v, unsigned number, uint64_t value)
{
	switch (number) {
	case DP_FIELD_KIND:
		v->kind = (enum dp_var_kind)known(value, DP_VAR_REFERENCE, DP_VAR_BOTTOM);
		break;
	case DP_FIELD_STATE:
		v->state = (enum dp_var_state)known(value, DP_VAR_UNREADABLE, DP_VAR_ABSENT);
		break;
	case DP_FIELD_PLACE:
		v->place = (enum dp_var_place)known(value, DP_VAR_CHILD, DP_VAR_LOCAL);
		break;
	case DP_FIELD_INDEX:
		v->index = (int64_t)(value >> 1 ^ (0 - (value & 1)));
		break;
	case DP_FIELD_ADDRESS:
		v->address = value;
		break;
	case DP_FIELD_SIZE:
		v->size = value;
		break;
	case DP_FIELD_NUMBER:
		v->number = value;
		break;
	case DP_FIELD_REAL:
		memcpy(&v->real, &value, sizeof(value));
		break;
	case DP_FIELD_IMAGINARY:
		memcpy(&v->imaginary, &value, sizeof(value));
		break;
	case DP_FIELD_IS_STRING:
		v->is_string = value;
		break;
	case DP_FIELD_BITS:
		v->bits = (uint8_t)value;
		break;
	case DP_FIELD_MORE:
		v->more = value;
		break;
	default:
		if (number < DP_FIELD_IS_CUT || number > DP_FIELD_IS_SHARED)
			return take_text(r, v, number, value);
		take_flag(v, number, value);
	}
	return NULL;
}

static struct dp_error *take_fields(struct dp_file_reader *r, struct dp_file_span in, const struct dp_file_place *at,
                                    struct dp_snap_variable *v)
{
	struct dp_file_field f;
	while (in.p < in.end) {
		const uint8_t *begin = in.p;
		DP_TRY(dp_file_field(r, &in, &f));
		if (f.number > DP_FIELD_LAST)
			continue; /* from a newer writer */
		if (f.wire != wire_of[f.number])
			return dp_file_bad(r, begin, "a field's wire type does not fit its number");
		if (f.wire == DP_WIRE_BYTES)
			DP_TRY(dp_file_take_element(r, &dp_store_variable.row[f.number - 1], &f, at, v));
		else
			DP_TRY(take_value(r, v, f.number, f.value));
	}
	return NULL;
}

struct dp_error *dp_file_decode_variable(struct dp_file_reader *r, const struct dp_file_field *f, const struct dp_file_place *at,
                                         struct dp_snap_variable *v)
{
	const struct dp_file_place inside = {at->thread, at->frame, v, at->depth + 1};
	v->owner = at->owner;
	v->frame = at->frame;
	v->thread = at->thread;
	v->name = v->type = v->base_type = v->object = v->unit = "";
	v->index = -1;
	if (at->depth == DP_STORE_DEPTH)
		return dp_file_bad(r, f->span.p, "variables are nested too deeply");
	DP_TRY(take_fields(r, f->span, &inside, v));
	if (!v->is_string)
		v->text_size = 0;
	return NULL;
}
