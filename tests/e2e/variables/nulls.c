// SPDX-License-Identifier: MIT
/* Strings that are there, and the pointers that lead to none. */
#include <stddef.h>

struct tag {
	char text[8]; /* at the address of the struct */
	char *name;
};
struct view {
	const char *data;
	size_t size;
};

__attribute__((noinline)) int handle(const char *s, const struct tag *t, struct view v)
{
	__asm__ volatile("" : : "r"(s), "r"(t) : "memory");
	return v.data != NULL;
}

int main(void)
{
	static const struct tag tag = {"array", NULL};
	int n = handle("text", &tag, (struct view){"view", 4});
	n += handle("NULL", &tag, (struct view){NULL, 0});
	n += handle(NULL, &tag, (struct view){NULL, 4});
	n += handle((char *)8, NULL, (struct view){(char *)8, 4});
	return n == 2 ? 0 : 1;
}
