/* SPDX-License-Identifier: MIT */
/* Sanitizes text for a terminal when a program or a file chose parts of it. */
#ifndef DP_BASE_SANITIZE_H
#define DP_BASE_SANITIZE_H

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: these characters can change the order in which text is displayed. */
static inline int dp_turns_text(const unsigned char *p)
{
	if (p[0] != 0xe2)
		return 0;
	if (p[1] == 0x80)
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae);
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
}

/* In place: control characters except \n and \t become '?', C1 controls (U+0080 to U+009F in UTF-8) "??", order marks "???". */
static inline char *dp_sanitize(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if ((*p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
			p[0] = p[1] = '?';
		else if (dp_turns_text(p))
			p[0] = p[1] = p[2] = '?';
	}
	return text;
}

#endif
