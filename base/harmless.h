/* SPDX-License-Identifier: MIT */
/* Texts on their way to a terminal, with parts that a program or a file chose. */
#ifndef DP_BASE_HARMLESS_H
#define DP_BASE_HARMLESS_H

/* In place: control characters but \n and \t become '?', those of C1 (U+0080 to U+009F, in UTF-8) "??". */
static inline char *dp_harmless(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if ((*p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
			p[0] = p[1] = '?';
	}
	return text;
}

#endif
