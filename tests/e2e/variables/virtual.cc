/* SPDX-License-Identifier: MIT */
/* Virtual bases: their offset in an object depends on the complete object's type. */
#include "values.h"

struct Root {
	long id;
	int tag;
};
struct Left : virtual Root {
	int left;
};
struct Right : virtual Root {
	char filler[40];
	short right;
};
struct Both : Left, Right {
	int both;
	virtual ~Both()
	{
	}
};

__attribute__((noinline)) long visit(Left *p, Right &r, Both *b)
{
	long sum = p->id + r.tag + b->left;
	__asm__ volatile("" : "+r"(sum) : : "memory");
	return sum;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 100;
	for (int i = 0; i < rounds; i++) {
		Left left;
		Right right;
		Both both;
		left.id = (long)any();
		left.left = (int)any();
		right.tag = (int)any();
		both.id = (long)any();
		both.tag = (int)any();
		both.right = (short)any();
		Left *p = any() & 1 ? &left : &both;
		Right &r = any() & 1 ? right : both;
		printf("{\"p_id\":%ld,\"r_tag\":%d,\"b_id\":%ld,\"b_tag\":%d,\"b_right\":%d}\n", p->id, r.tag, both.id, both.tag,
		       both.right);
		visit(p, r, &both);
		breathe(i);
	}
	return 0;
}
