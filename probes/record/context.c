/* SPDX-License-Identifier: MIT */
/* Parses -t: regs | reg:NAME | TYPE:NAME:ADDR | backtrace[:DEPTH]. */
#include "agent/abi.h"
#include "base/cleanup.h"
#include "probes/record/fields_internal.h"
#include "probes/record/lex.h"
#include "probes/record/registers.h"

#include <string.h>

enum { BACKTRACE_DEFAULT = 32, STRING_DEFAULT = 256, BYTES_MAX = 1024, XMM_BYTES = 16, NAME_MAX_LEN = 128 };

/* A size of 0 means TYPE[N] is required; `limit` is the largest N. */
static const struct type {
	const char *name;
	enum dp_type type;
	uint32_t size, limit;
} types[] = {
        {"int8", DP_TYPE_INT, 1, 0},
        {"int16", DP_TYPE_INT, 2, 0},
        {"int32", DP_TYPE_INT, 4, 0},
        {"int64", DP_TYPE_INT, 8, 0},
        {"uint8", DP_TYPE_UINT, 1, 0},
        {"uint16", DP_TYPE_UINT, 2, 0},
        {"uint32", DP_TYPE_UINT, 4, 0},
        {"uint64", DP_TYPE_UINT, 8, 0},
        {"char", DP_TYPE_INT, 1, 0},
        {"int", DP_TYPE_INT, 4, 0},
        {"uint", DP_TYPE_UINT, 4, 0},
        {"long", DP_TYPE_INT, 8, 0},
        {"ulong", DP_TYPE_UINT, 8, 0},
        {"float", DP_TYPE_FLOAT, 4, 0},
        {"double", DP_TYPE_FLOAT, 8, 0},
        {"pointer", DP_TYPE_POINTER, 8, 0},
        {"bytes", DP_TYPE_BYTES, 0, BYTES_MAX},
        {"string", DP_TYPE_STRING, STRING_DEFAULT, DP_STRING_MAX},
};
static const char type_list[] = "types are int8 int16 int32 int64 uint8 uint16 uint32 uint64 char int uint long ulong float "
                                "double pointer string[N] bytes[N]";

static struct dp_error *add_register(struct dp_fields *fields, const char *text, const char *name)
{
	struct dp_field f = {.name = (char *)name, .type = DP_TYPE_UINT, .size = 8, .hex = true};
	uint8_t size = 8;
	if (dp_register_find(name, &f.reg, &f.shift, &size)) {
		f.source = DP_SRC_REG;
		f.size = size;
	} else if (!strcmp(name, "rip")) {
		f.source = DP_SRC_RIP;
	} else if (dp_register_is_flags(name)) {
		f.source = DP_SRC_RFLAGS;
		f.name = (char *)"rflags";
	} else if (dp_register_xmm(name, &f.reg)) {
		f = (struct dp_field){
		        .name = (char *)name, .type = DP_TYPE_BYTES, .size = XMM_BYTES, .source = DP_SRC_XMM, .reg = f.reg};
	} else {
		struct dp_buf help;
		dp_buf_init(&help);
		dp_register_suggest(name, false, &help);
		struct dp_error *err = dp_lex_error(text, (size_t)(name - text), "unknown register: %s", dp_buf_str(&help));
		dp_buf_fini(&help);
		return err;
	}
	return dp_fields_append(fields, &f);
}

/* In the order of debuggers. */
static struct dp_error *add_all_registers(struct dp_fields *fields)
{
	static const char *const order[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8",
	                                    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags"};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		DP_TRY(add_register(fields, order[i], order[i]));
	return NULL;
}

static struct dp_error *add_backtrace(struct dp_fields *fields, const char *text, const char *depth)
{
	uint64_t n = BACKTRACE_DEFAULT;
	if (depth && (!dp_lex_number(depth, strlen(depth), &n) || n < 1 || n > DP_BACKTRACE_MAX))
		return dp_lex_error(text, (size_t)(depth - text), "the backtrace depth must be a number from 1 to %u",
		                    DP_BACKTRACE_MAX);
	struct dp_field f = {
	        .name = (char *)DP_NAME_BACKTRACE,
	        .type = DP_TYPE_BACKTRACE,
	        .size = (uint32_t)n,
	        .hex = true,
	        .source = DP_SRC_UNWIND,
	};
	return dp_fields_append(fields, &f);
}

/* The field for --snapshot. */
static struct dp_error *add_snapshot(struct dp_fields *fields)
{
	struct dp_field f = {
	        .name = (char *)DP_NAME_SNAPSHOT,
	        .type = DP_TYPE_UINT,
	        .size = 8,
	        .hex = true,
	        .source = DP_SRC_PARK,
	};
	return dp_fields_append(fields, &f);
}

static const struct type *find_type(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return &types[i];
	return NULL;
}

/* Parses the TYPE of TYPE:NAME:ADDR (`len` characters) into the field's type, size and source. */
static struct dp_error *parse_type(const char *text, size_t len, struct dp_field *f)
{
	const char *bracket = memchr(text, '[', len);
	const struct type *type = find_type(text, bracket ? (size_t)(bracket - text) : len);
	if (!type)
		return dp_lex_error(text, 0, "unknown type; %s", type_list);
	uint64_t n = type->size;
	if (bracket && !type->limit)
		return dp_lex_error(text, (size_t)(bracket - text), "only string and bytes have a size");
	if (!bracket && !n)
		return dp_lex_error(text, len, "%s needs a size: %s[N]", type->name, type->name);
	const char *number = bracket ? bracket + 1 : NULL, *end = text + len - 1;
	if (bracket && (*end != ']' || !dp_lex_number(number, (size_t)(end - number), &n) || n < 1 || n > type->limit))
		return dp_lex_error(text, (size_t)(number - text), "the size of %s must be a number from 1 to %u, in brackets",
		                    type->name, type->limit);
	f->type = type->type;
	f->size = (uint32_t)n;
	f->hex = type->type == DP_TYPE_POINTER;
	f->source = type->type == DP_TYPE_STRING ? DP_SRC_STRING : DP_SRC_MEMORY;
	return NULL;
}

static bool reserved(const char *name)
{
	return !strcmp(name, DP_NAME_MASK) || !strcmp(name, DP_NAME_BACKTRACE_LENGTH);
}

static struct dp_error *add_memory(struct dp_fields *fields, const char *text, const char *colon)
{
	struct dp_field f = {0};
	DP_TRY(parse_type(text, (size_t)(colon - text), &f));
	const char *name = colon + 1, *second = strchr(name, ':');
	size_t len = second ? (size_t)(second - name) : strlen(name);
	if (!dp_lex_identifier(name, len) || len > NAME_MAX_LEN)
		return dp_lex_error(text, (size_t)(name - text),
		                    "a field needs a name of letters, digits and '_': TYPE:NAME:ADDR");
	if (!second)
		return dp_lex_error(text, strlen(text), "the address is missing: TYPE:NAME:ADDR");
	const char *addr = second + 1;
	if (!dp_lex_number(addr, strlen(addr), &f.addr.v))
		return dp_lex_error(text, (size_t)(addr - text),
		                    "an address is a number below 2^64: 0x... (hexadecimal), 0... (octal) or decimal");
	dp_auto_free char *copy = strndup(name, len);
	if (!copy)
		return dp_error_nomem();
	if (reserved(copy))
		return dp_lex_error(text, (size_t)(name - text), "dynprobe uses this name itself: choose another name");
	f.name = copy;
	return dp_fields_append(fields, &f);
}

/* On failure some fields may have been added. */
static struct dp_error *parse(struct dp_fields *fields, const char *context)
{
	const char *colon = strchr(context, ':');
	size_t len = colon ? (size_t)(colon - context) : strlen(context);
	if (!strcmp(context, "regs"))
		return add_all_registers(fields);
	if (colon && len == 3 && !memcmp(context, "reg", 3))
		return add_register(fields, context, colon + 1);
	if (len == strlen(DP_NAME_BACKTRACE) && !memcmp(context, DP_NAME_BACKTRACE, len))
		return add_backtrace(fields, context, colon ? colon + 1 : NULL);
	if (!strcmp(context, DP_CONTEXT_SNAPSHOT))
		return add_snapshot(fields);
	if (colon)
		return add_memory(fields, context, colon);
	return dp_lex_error(context, 0, "unknown context; use regs, reg:NAME, TYPE:NAME:ADDR or backtrace[:DEPTH]");
}

struct dp_error *dp_fields_add(struct dp_fields *fields, const char *context)
{
	size_t before = fields->n;
	struct dp_error *err = parse(fields, context);
	if (!err)
		err = dp_fields_check(fields, context);
	if (err)
		dp_fields_cut(fields, before);
	return err;
}
