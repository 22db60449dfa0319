/* SPDX-License-Identifier: MIT */
#include "output/calls/sockets.h"

#include "output/calls/data.h"
#include "output/calls/headers.h"
#include "output/calls/names.h"
#include "output/format/put.h"

#include <arpa/inet.h>

enum { TEXT_MOST = 32 };

static bool is_octal(uint8_t c)
{
	return c >= '0' && c <= '7';
}

static void put_byte(struct dp_buf *b, uint8_t c, bool digit_follows)
{
	static const char letters[] = "\n\r\t\v\f\"\\", named[] = "nrtvf\"\\";
	const char *at = c ? strchr(letters, c) : NULL;
	if (at)
		dp_buf_printf(b, "\\%c", named[at - letters]);
	else if (c >= ' ' && c < 0x7f)
		dp_buf_put(b, &c, 1);
	else
		dp_buf_printf(b, digit_follows ? "\\%03o" : "\\%o", c);
}

void dp_put_call_text(struct dp_buf *b, const uint8_t *bytes, size_t n, bool more)
{
	const size_t shown = n < TEXT_MOST ? n : TEXT_MOST;
	dp_put_str(b, "\"");
	for (size_t i = 0; i < shown; i++)
		put_byte(b, bytes[i], i + 1 < shown && is_octal(bytes[i + 1]));
	dp_put_str(b, more || n > shown ? "\"..." : "\"");
}

static bool put_unix(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	const size_t at = offsetof(struct sockaddr_un, sun_path), len = n > at ? n - at : 0;
	if (!len)
		return false;
	dp_put_str(b, ", sun_path=");
	if (bytes[at]) {
		dp_put_visible(b, bytes + at, strnlen((const char *)bytes + at, len), '"');
	} else {
		dp_put_str(b, "@");
		dp_put_visible(b, bytes + at + 1, len - 1, '"');
	}
	return true;
}

static bool put_inet(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	struct sockaddr_in in;
	char text[INET_ADDRSTRLEN];
	if (n < sizeof(in))
		return false;
	memcpy(&in, bytes, sizeof(in));
	dp_buf_printf(b, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", ntohs(in.sin_port),
	              inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)));
	return true;
}

static bool put_inet6(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	struct sockaddr_in6 in;
	char text[INET6_ADDRSTRLEN];
	if (n < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	memcpy(&in, bytes, n < sizeof(in) ? n : sizeof(in));
	dp_buf_printf(b, ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", &sin6_addr)",
	              ntohs(in.sin6_port), ntohl(in.sin6_flowinfo), inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof(text)));
	if (n >= sizeof(in))
		dp_buf_printf(b, ", sin6_scope_id=%u", in.sin6_scope_id);
	return true;
}

bool dp_put_sockaddr(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	const struct dp_call_names *families = dp_call_names_find("domain", strlen("domain"));
	sa_family_t family;
	if (n < sizeof(family))
		return false;
	memcpy(&family, bytes, sizeof(family));
	dp_put_str(b, "{sa_family=");
	if (!dp_put_call_names(b, families, family))
		dp_put_dec(b, family);
	if (family == AF_UNIX)
		put_unix(b, bytes, n);
	else if (family == AF_INET)
		put_inet(b, bytes, n);
	else if (family == AF_INET6)
		put_inet6(b, bytes, n);
	dp_put_str(b, "}");
	return true;
}
