/* SPDX-License-Identifier: MIT */
/*
 * Parses a marker's operands: SIZE@OPERAND, separated by spaces. SIZE is in bytes, negative if signed, with an f after it if
 * floating-point. OPERAND is in assembler syntax: $5, %eax, -16(%rbp), (%rax,%rbx,4), name+8(%rip).
 */
#include "probes/point/usdt/usdt.h"
#include "probes/record/registers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
	const char *p, *end;
	dp_usdt_find *find;
	void *data;
};

static bool eat(struct cursor *c, char wanted)
{
	const bool there = c->p < c->end && *c->p == wanted;
	c->p += there;
	return there;
}

static bool number(struct cursor *c, int64_t *ret)
{
	char text[32], *end;
	const size_t n = (size_t)(c->end - c->p) < sizeof(text) - 1 ? (size_t)(c->end - c->p) : sizeof(text) - 1;
	const size_t sign = n && (*c->p == '-' || *c->p == '+');
	if (n <= sign || !isdigit((unsigned char)c->p[sign]))
		return false;
	memcpy(text, c->p, n);
	text[n] = 0;
	/* Large unsigned constants are written unsigned. */
	*ret = *text == '-' ? strtoll(text, &end, 0) : (int64_t)strtoull(text, &end, 0);
	c->p += end - text;
	return true;
}

static bool name(struct cursor *c, const char **ret, size_t *len)
{
	*ret = c->p;
	while (c->p < c->end && (isalnum((unsigned char)*c->p) || strchr("_.$@", *c->p)))
		c->p++;
	*len = (size_t)(c->p - *ret);
	return *len;
}

/* A register's name after its %. */
static bool reg(struct cursor *c, uint8_t *ret, uint8_t *shift, uint8_t *size)
{
	const char *at;
	size_t len;
	char text[8];
	if (!eat(c, '%') || !name(c, &at, &len) || len >= sizeof(text))
		return false;
	memcpy(text, at, len);
	text[len] = 0;
	return dp_register_find(text, ret, shift, size);
}

static bool xmm(struct cursor *c, uint8_t *ret)
{
	struct cursor at = *c;
	int64_t n;
	if (at.end - at.p < 5 || strncmp(at.p, "%xmm", 4) || !isdigit((unsigned char)at.p[4]))
		return false;
	at.p += 4;
	if (!number(&at, &n) || n < 0 || n > 15)
		return false;
	*ret = (uint8_t)n;
	*c = at;
	return true;
}

/* A sum: name, name+8, -4+name, 16. *relative: it contains an address. */
static bool displacement(struct cursor *c, int64_t *ret, bool *relative)
{
	*ret = 0;
	*relative = false;
	while (c->p < c->end && *c->p != '(') {
		const char *text;
		size_t len;
		int64_t value;
		uint64_t addr;
		if (number(c, &value)) {
			*ret = (int64_t)((uint64_t)*ret + (uint64_t)value);
			continue;
		}
		eat(c, '+');
		if (!name(c, &text, &len) || *relative || !c->find || !c->find(text, len, &addr, c->data))
			return false;
		*relative = true;
		*ret = (int64_t)((uint64_t)*ret + addr);
	}
	return true;
}

/* (%base,%index,scale), each part optional; 64-bit registers only. */
static bool address(struct cursor *c, struct dp_usdt_arg *a, bool relative)
{
	uint8_t shift, size;
	int64_t scale = 1;
	if (!eat(c, '('))
		return relative; /* valid for a variable's name; a number alone is not an operand */
	if (c->end - c->p >= 4 && !strncmp(c->p, "%rip", 4)) {
		c->p += 4;
		return relative && eat(c, ')');
	}
	if (c->p < c->end && *c->p == '%' && (!reg(c, &a->base, &shift, &size) || size != 8))
		return false;
	if (eat(c, ',')) {
		if (!reg(c, &a->index, &shift, &size) || size != 8)
			return false;
		if (eat(c, ',') && (!number(c, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8)))
			return false;
	}
	a->scale = (uint8_t)scale;
	return eat(c, ')');
}

static bool operand(struct cursor *c, struct dp_usdt_arg *a)
{
	uint8_t size;
	bool relative;
	if (eat(c, '$')) {
		a->kind = DP_USDT_CONST;
		return number(c, &a->disp);
	}
	if (xmm(c, &a->base)) {
		a->kind = DP_USDT_REG;
		a->xmm = true;
		return true;
	}
	if (c->p < c->end && *c->p == '%') { /* a segment register is not a general register and fails */
		a->kind = DP_USDT_REG;
		if (!reg(c, &a->base, &a->shift, &size))
			return false;
		a->size = a->size < size ? a->size : size;
		return true;
	}
	a->kind = DP_USDT_MEMORY;
	return displacement(c, &a->disp, &relative) && address(c, a, relative);
}

static bool argument(struct cursor *c, struct dp_usdt_arg *a)
{
	struct cursor at = *c;
	int64_t size;
	*a = (struct dp_usdt_arg){.size = 8, .base = DP_USDT_NO_REG, .index = DP_USDT_NO_REG, .scale = 1};
	if (number(&at, &size)) {
		a->is_float = eat(&at, 'f');
		if (eat(&at, '@')) {
			a->is_signed = size < 0;
			size = size < 0 ? -size : size;
			if (size != 1 && size != 2 && size != 4 && size != 8)
				return false;
			a->size = (uint8_t)size;
			*c = at;
		}
	}
	return operand(c, a) && c->p == c->end;
}

size_t dp_usdt_args_parse(const char *text, dp_usdt_find *find, void *data, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS])
{
	size_t n = 0;
	while (n < DP_USDT_MAX_ARGS) {
		text += strspn(text, " ");
		if (!*text)
			break;
		struct cursor c = {text, text + strcspn(text, " "), find, data};
		text = c.end;
		if (!argument(&c, &ret[n]))
			ret[n] = (struct dp_usdt_arg){.base = DP_USDT_NO_REG, .index = DP_USDT_NO_REG};
		n++;
	}
	return n;
}
