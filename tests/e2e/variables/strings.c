// SPDX-License-Identifier: MIT
/* Strings that carry their length, as programs have them: no NUL behind them, empty ones at NULL, and structs that only look so.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
	size_t len;
	unsigned char *data;
} ngx_str_t;
struct ist {
	char *ptr;
	int len;
};
struct buffer { /* binary data */
	unsigned char *bytes;
	size_t size;
};
struct request {
	int id;
	ngx_str_t uri, none;
	struct ist host;
	struct buffer body;
};

static unsigned char text[] = "GET /index.html?a=1 HTTP/1.1\r\nHost: example.org\r\n";

__attribute__((noinline)) int handle(struct request *r, ngx_str_t method, int n)
{
	__asm__ volatile("" : "+r"(n) : : "memory");
	return (int)(r->uri.len + method.len) + n;
}

int main(void)
{
	static const int counts[] = {-1, 0, 6, 1000};
	struct request r = {.uri = {11, text + 4}, .host = {(char *)text + 36, 11}, .body = {text, 2}};
	int sum = 0;
	for (int i = 0; i < 4; i++) {
		r.id = i;
		sum += handle(&r, (ngx_str_t){3, text}, counts[i]);
	}
	r.uri = (ngx_str_t){(size_t)-1, text + 4};
	r.host = (struct ist){(char *)8, 4};
	sum += handle(&r, (ngx_str_t){0, NULL}, 0);
	printf("%d\n", sum);
	return 0;
}
