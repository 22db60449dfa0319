/* SPDX-License-Identifier: MIT */
/* Two events of one call become one; what lacks its other half is told. */
#include "output/output.h"
#include "probes/record/fields.h"

#include <criterion/criterion.h>
#include <string.h>

#define NUMBER {.name = (char *)DP_NAME_CALL, .type = DP_TYPE_UINT, .size = 8, .source = DP_SRC_EXPR}

static struct dp_field entry_fields[] = {
        NUMBER,
        {.name = (char *)"id", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_REG},
        {.name = (char *)"name", .type = DP_TYPE_STRING, .size = 32, .source = DP_SRC_STRING},
};
static struct dp_field return_fields[] = {
        NUMBER,
        {.name = (char *)"retval", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_REG},
        {.name = (char *)"id", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_MEMORY},
};
static struct dp_field other_fields[] = {{.name = (char *)"x", .type = DP_TYPE_INT, .size = 4, .source = DP_SRC_REG}};
static const struct dp_fields entries = {entry_fields, 3}, returns = {return_fields, 3}, others = {other_fields, 1};
static const struct dp_event_class classes[] = {
        {.name = "f_entry", .fields = &entries},
        {.name = "f_return", .fields = &returns, .entry = "f_entry"},
        {.name = "g", .fields = &others},
};
enum { ENTRY, RETURN, OTHER };

static struct dp_joiner *joiner;
static struct dp_joiner_counts counts;

static void begin(void)
{
	struct dp_error *err = dp_joiner_create(classes, 3, &joiner);
	cr_assert_null(err);
	cr_assert_not_null(joiner);
}

static void end(void)
{
	dp_joiner_counts(joiner, &counts);
	joiner = dp_joiner_destroy(joiner);
}

/* Both classes have a field that may fail: payloads begin with the mask. */
static bool pass(unsigned class, pid_t pid, uint64_t number, int32_t first, const void *rest, size_t n, uint64_t mask,
                 struct dp_event *ret)
{
	uint8_t payload[64];
	memcpy(payload, &mask, 8);
	memcpy(payload + 8, &number, 8);
	memcpy(payload + 16, &first, 4);
	memcpy(payload + 20, rest, n);
	const struct dp_event e = {.pid = pid, .tid = pid, .probe = class, .payload = payload, .len = 20 + n};
	return dp_joiner_event(joiner, &e, ret);
}

static bool enter(pid_t pid, uint64_t number, int32_t id, const char *name)
{
	struct dp_event e;
	return pass(ENTRY, pid, number, id, name, strlen(name) + 1, 0, &e);
}

static bool leave(pid_t pid, uint64_t number, int32_t retval, uint64_t mask, struct dp_event *ret)
{
	const int32_t id = 99;
	return pass(RETURN, pid, number, retval, &id, sizeof(id), mask, ret);
}

struct values {
	size_t n;
	int64_t number[8];
	char text[8][32];
	bool unreadable[8];
};

static void note(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct values *to = data;
	to->unreadable[to->n] = v->unreadable;
	to->number[to->n] = (int64_t)v->u;
	if (field->type == DP_TYPE_STRING)
		snprintf(to->text[to->n], sizeof(to->text[0]), "%s", (const char *)v->bytes);
	to->n++;
}

static struct values values_of(const struct dp_event *e)
{
	struct values v = {0};
	cr_assert(dp_fields_decode(dp_joiner_classes(joiner)[e->probe].fields, e->payload, e->len, note, &v));
	return v;
}

static void check_call(const struct dp_event *e, int64_t id, const char *name, int64_t retval)
{
	const struct values v = values_of(e);
	cr_expect_not(e->unseen);
	cr_expect_eq(v.n, 4);
	cr_expect_eq(v.number[0], id);
	cr_expect_str_eq(v.text[1], name);
	cr_expect_eq(v.number[2], retval);
	cr_expect_eq(v.number[3], 99);
}

Test(joiner, classes_have_the_arguments_first_and_no_name_twice)
{
	begin();
	const struct dp_event_class *c = dp_joiner_classes(joiner);
	static const char *const names[] = {"id", "name", "retval", "id_return"};
	cr_assert(c[RETURN].is_call && c[ENTRY].joined && !c[OTHER].is_call && !c[OTHER].joined);
	cr_assert_eq(c[RETURN].nargs, 2);
	cr_assert_eq(c[RETURN].fields->n, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_str_eq(c[RETURN].fields->field[i].name, names[i]);
	cr_expect_str_eq(c[RETURN].fields->field[3].label, "id");
	end();
}

Test(joiner, classes_that_are_no_calls_need_none)
{
	struct dp_error *err = dp_joiner_create(&classes[OTHER], 1, &joiner);
	cr_assert_null(err);
	cr_assert_null(joiner);
}

Test(joiner, recursive_calls_are_joined_by_their_numbers)
{
	struct dp_event e;
	begin();
	cr_expect_not(enter(1, 100, 7, "outer"));
	cr_expect_not(enter(1, 200, 8, "inner"));
	cr_assert(leave(1, 200, 80, 0, &e));
	check_call(&e, 8, "inner", 80);
	cr_assert(leave(1, 100, 70, 0, &e));
	check_call(&e, 7, "outer", 70);
	end();
	cr_expect_eq(counts.open, 0);
	cr_expect_eq(counts.unseen, 0);
}

Test(joiner, another_number_or_process_is_another_call)
{
	struct dp_event e;
	begin();
	enter(1, 100, 7, "left by longjmp");
	cr_assert(leave(1, 101, 5, 0, &e));
	cr_expect(e.unseen);
	const struct values v = values_of(&e);
	cr_expect(v.unreadable[0] && v.unreadable[1] && !v.unreadable[2]);
	cr_expect_eq(v.number[2], 5);
	cr_assert(leave(2, 100, 5, 0, &e));
	cr_expect(e.unseen);
	end();
	cr_expect_eq(counts.open, 1);
	cr_expect_eq(counts.unseen, 2);
}

Test(joiner, a_return_ends_its_call)
{
	struct dp_event e;
	begin();
	enter(1, 100, 7, "once");
	cr_assert(leave(1, 100, 1, 0, &e));
	cr_expect_not(e.unseen);
	cr_assert(leave(1, 100, 2, 0, &e));
	cr_expect(e.unseen);
	end();
}

Test(joiner, unreadable_values_stay_with_their_fields)
{
	struct dp_event e;
	begin();
	pass(ENTRY, 1, 100, 7, "", 1, 1 << 2, &e);
	cr_assert(leave(1, 100, 1, 1 << 2, &e));
	const struct values v = values_of(&e);
	cr_expect(!v.unreadable[0] && v.unreadable[1] && !v.unreadable[2] && v.unreadable[3]);
	end();
}

Test(joiner, open_calls_are_bounded_and_counted)
{
	struct dp_event e;
	begin();
	for (unsigned i = 1; i <= 70000; i++)
		enter(1, i, (int32_t)i, "x");
	cr_assert(leave(1, 1, 0, 0, &e));
	cr_expect(e.unseen, "the oldest is forgotten");
	cr_assert(leave(1, 70000, 3, 0, &e));
	check_call(&e, 70000, "x", 3);
	end();
	cr_expect_eq(counts.open, 69999);
}

Test(joiner, other_events_pass)
{
	const int32_t x = 5;
	const struct dp_event e = {.probe = OTHER, .payload = (const uint8_t *)&x, .len = 4};
	struct dp_event ret;
	begin();
	cr_assert(dp_joiner_event(joiner, &e, &ret));
	cr_expect_eq(ret.payload, e.payload);
	end();
}
