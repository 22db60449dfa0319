/* SPDX-License-Identifier: MIT */
/* The types that need no debug information. */
#include "probes/dwarf/type.h"

#include <string.h>

const struct dp_ctype dp_ctype_int = {.kind = DP_CTYPE_INT, .size = 4, .is_signed = true, .name = "int"};
const struct dp_ctype dp_ctype_uint = {.kind = DP_CTYPE_INT, .size = 4, .name = "unsigned int"};
const struct dp_ctype dp_ctype_long = {.kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .name = "long"};
const struct dp_ctype dp_ctype_ulong = {.kind = DP_CTYPE_INT, .size = 8, .name = "unsigned long"};
const struct dp_ctype dp_ctype_duration = {
        .kind = DP_CTYPE_INT, .size = 8, .display = DP_DISPLAY_DURATION, .name = "unsigned long"};
const struct dp_ctype dp_ctype_word = {.kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .is_word = true, .name = "register"};
const struct dp_ctype dp_ctype_result = {
        .kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .display = DP_DISPLAY_RESULT, .name = "result"};
const struct dp_ctype dp_ctype_call = {
        .kind = DP_CTYPE_INT, .size = 8, .display = DP_DISPLAY_CALL, .name = "number of a system call"};
const struct dp_ctype dp_ctype_char = {.kind = DP_CTYPE_INT, .size = 1, .is_signed = true, .is_text = true, .name = "char"};
const struct dp_ctype dp_ctype_bool = {.kind = DP_CTYPE_INT, .size = 1, .is_bool = true, .name = "bool"};
const struct dp_ctype dp_ctype_double = {.kind = DP_CTYPE_FLOAT, .size = 8, .name = "double"};
const struct dp_ctype dp_ctype_float = {.kind = DP_CTYPE_FLOAT, .size = 4, .name = "float"};
const struct dp_ctype dp_ctype_void = {.kind = DP_CTYPE_VOID, .name = "void", .text = "void", .base = "void"};
const struct dp_ctype dp_ctype_void_pointer = {.kind = DP_CTYPE_POINTER, .size = 8, .to = &dp_ctype_void, .name = "void *"};

static const struct dp_ctype dp_ctype_short = {.kind = DP_CTYPE_INT, .size = 2, .is_signed = true, .name = "short"},
                             dp_ctype_ushort = {.kind = DP_CTYPE_INT, .size = 2, .name = "unsigned short"},
                             dp_ctype_schar = {.kind = DP_CTYPE_INT, .size = 1, .is_signed = true, .name = "signed char"},
                             dp_ctype_uchar = {.kind = DP_CTYPE_INT, .size = 1, .name = "unsigned char"};

static const struct dp_ctype dp_ctype_int128 = {.kind = DP_CTYPE_INT128,
                                                .size = 16,
                                                .is_signed = true,
                                                .display = DP_DISPLAY_INT128,
                                                .name = "__int128"},
                             dp_ctype_uint128 = {.kind = DP_CTYPE_INT128,
                                                 .size = 16,
                                                 .display = DP_DISPLAY_UINT128,
                                                 .name = "unsigned __int128"},
                             dp_ctype_long_double = {.kind = DP_CTYPE_LONG_DOUBLE,
                                                     .size = 16,
                                                     .display = DP_DISPLAY_LONG_DOUBLE,
                                                     .name = "long double"};

static const struct {
	const char *name;
	const struct dp_ctype *type;
} named[] = {
        {"__int128", &dp_ctype_int128},
        {"unsigned __int128", &dp_ctype_uint128},
        {"__int128 unsigned", &dp_ctype_uint128},
        {"signed __int128", &dp_ctype_int128},
        {"long double", &dp_ctype_long_double},
        {"double long", &dp_ctype_long_double},
        {"int8_t", &dp_ctype_schar},
        {"uint8_t", &dp_ctype_uchar},
        {"int16_t", &dp_ctype_short},
        {"uint16_t", &dp_ctype_ushort},
        {"int32_t", &dp_ctype_int},
        {"uint32_t", &dp_ctype_uint},
        {"int64_t", &dp_ctype_long},
        {"uint64_t", &dp_ctype_ulong},
        {"size_t", &dp_ctype_ulong},
        {"ssize_t", &dp_ctype_long},
        {"intptr_t", &dp_ctype_long},
        {"uintptr_t", &dp_ctype_ulong},
        {"float", &dp_ctype_float},
        {"double", &dp_ctype_double},
        {"void", &dp_ctype_void},
        {"bool", &dp_ctype_bool},
        {"_Bool", &dp_ctype_bool},
        {"char", &dp_ctype_char},
};

/* Accepts "unsigned long int" with its words in any order. */
static bool count_words(const char *name, unsigned count[6])
{
	static const char *const words[] = {"signed", "unsigned", "char", "short", "int", "long"};
	for (size_t len; *name; name += len + (name[len] == ' ')) {
		size_t i = 0;
		len = strcspn(name, " ");
		while (i < 6 && (strlen(words[i]) != len || memcmp(words[i], name, len)))
			i++;
		if (i == 6)
			return false;
		count[i]++;
	}
	return true;
}

const struct dp_ctype *dp_ctype_plain(const char *name)
{
	unsigned n[6] = {0};
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (!strcmp(name, named[i].name))
			return named[i].type;
	if (!count_words(name, n) || n[0] + n[1] > 1 || n[2] + n[3] > 1 || n[4] > 1 || n[5] > 2)
		return NULL;
	if (n[2])
		return n[4] || n[5] ? NULL : n[1] ? &dp_ctype_uchar : &dp_ctype_schar;
	if (n[3])
		return n[5] ? NULL : n[1] ? &dp_ctype_ushort : &dp_ctype_short;
	if (n[5])
		return n[1] ? &dp_ctype_ulong : &dp_ctype_long;
	return n[1] ? &dp_ctype_uint : &dp_ctype_int;
}
