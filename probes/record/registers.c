/* SPDX-License-Identifier: MIT */
#include "probes/record/registers.h"
#include "probes/record/lex.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Numbered as in instructions; 8, 4, 2 and 1 bytes wide. */
static const char *const names[DP_REGISTERS][4] = {
        {"rax", "eax", "ax", "al"},      {"rcx", "ecx", "cx", "cl"},      {"rdx", "edx", "dx", "dl"},
        {"rbx", "ebx", "bx", "bl"},      {"rsp", "esp", "sp", "spl"},     {"rbp", "ebp", "bp", "bpl"},
        {"rsi", "esi", "si", "sil"},     {"rdi", "edi", "di", "dil"},     {"r8", "r8d", "r8w", "r8b"},
        {"r9", "r9d", "r9w", "r9b"},     {"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
        {"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"}, {"r14", "r14d", "r14w", "r14b"},
        {"r15", "r15d", "r15w", "r15b"},
};
static const char *const high[4] = {"ah", "ch", "dh", "bh"};
static const char *const special[] = {"rip", "rflags", "eflags"};
enum { NSPECIAL = sizeof(special) / sizeof(special[0]) };

bool dp_register_find(const char *name, uint8_t *reg, uint8_t *shift, uint8_t *size)
{
	for (uint8_t r = 0; r < DP_REGISTERS; r++)
		for (unsigned width = 0; width < 4; width++)
			if (!strcmp(name, names[r][width])) {
				*reg = r;
				*shift = 0;
				*size = (uint8_t)(8u >> width);
				return true;
			}
	for (uint8_t r = 0; r < 4; r++)
		if (!strcmp(name, high[r])) {
			*reg = r;
			*shift = 8;
			*size = 1;
			return true;
		}
	return false;
}

const char *dp_register_name(uint8_t reg)
{
	return names[reg % DP_REGISTERS][0];
}

bool dp_register_xmm(const char *name, uint8_t *reg)
{
	char canonical[8];
	for (uint8_t r = 0; r < DP_REGISTERS; r++) {
		snprintf(canonical, sizeof(canonical), "xmm%u", r);
		if (!strcmp(name, canonical)) {
			*reg = r;
			return true;
		}
	}
	return false;
}

bool dp_register_is_flags(const char *name)
{
	return !strcmp(name, "rflags") || !strcmp(name, "eflags");
}

enum { NAME_MAX_LEN = 8, SUGGESTIONS = 4 };

/* Writes the i-th of all names to `out`; false after the last. */
static bool candidate(size_t i, bool condition, char out[NAME_MAX_LEN])
{
	if (i < DP_REGISTERS * 4u)
		return snprintf(out, NAME_MAX_LEN, "%s", names[i / 4][i % 4]) > 0;
	i -= DP_REGISTERS * 4u;
	if (i < 4)
		return snprintf(out, NAME_MAX_LEN, "%s", high[i]) > 0;
	i -= 4;
	if (i < NSPECIAL)
		return snprintf(out, NAME_MAX_LEN, "%s", special[i]) > 0;
	i -= NSPECIAL;
	if (i < (condition ? 6u : DP_REGISTERS))
		return snprintf(out, NAME_MAX_LEN, "%s%u", condition ? "arg" : "xmm", (unsigned)i % 16u) > 0;
	return false;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Levenshtein distance, ignoring case. Both names have at most NAME_MAX_LEN characters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t n = strlen(b);
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = i + 1;
		for (unsigned j = 0; j < n; j++) {
			bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[j]);
			unsigned next = min3(row[j] + 1, row[j + 1] + 1, diagonal + (same ? 0 : 1));
			diagonal = row[j + 1];
			row[j + 1] = next;
		}
	}
	return row[n];
}

static unsigned suggest_at(const char *name, unsigned wanted, bool condition, struct dp_buf *out)
{
	char known[NAME_MAX_LEN];
	unsigned found = 0;
	for (size_t i = 0; found < SUGGESTIONS && candidate(i, condition, known); i++)
		if (distance(name, known) == wanted)
			dp_buf_printf(out, "%s%s", found++ ? ", " : "did you mean ", known);
	return found;
}

void dp_register_suggest(const char *name, bool condition, struct dp_buf *out)
{
	unsigned found = 0;
	for (unsigned d = 0; !found && d <= 2 && d < strlen(name) && strlen(name) <= NAME_MAX_LEN; d++)
		found = suggest_at(name, d, condition, out);
	if (found)
		dp_buf_printf(out, "?");
	else
		dp_buf_printf(out, "use rax ... r15 and their parts, rip, rflags, %s",
		              condition ? "arg0 ... arg5" : "xmm0 ... xmm15");
}
