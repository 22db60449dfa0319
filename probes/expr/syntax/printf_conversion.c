/* SPDX-License-Identifier: MIT */
/* Parses one conversion of a printf format. Used by the parser and the output. */
#include "probes/expr/syntax/printf_form.h"

#include <ctype.h>
#include <string.h>

static int small_number(const char **at)
{
	int v = 0;
	while (isdigit((unsigned char)**at) && v < 1000)
		v = v * 10 + *(*at)++ - '0';
	return v;
}

size_t dp_printf_conversion(const char *at, struct dp_conversion *ret)
{
	const char *p = at + 1;
	const size_t flags = strspn(p, "-+ #0");
	*ret = (struct dp_conversion){.width = -1, .precision = -1};
	if (flags >= sizeof(ret->flags))
		return 0;
	memcpy(ret->flags, p, flags);
	p += flags;
	if (isdigit((unsigned char)*p))
		ret->width = small_number(&p);
	if (*p == '.') {
		p++;
		ret->precision = small_number(&p);
	}
	p += strspn(p, "hlzjt");
	if (!*p || !strchr("diuxXcspf%", *p) || ret->width > 200 || ret->precision > 200)
		return 0;
	ret->letter = *p == 'i' ? 'd' : *p;
	return (size_t)(p - at) + 1;
}
