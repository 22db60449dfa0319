/* SPDX-License-Identifier: MIT */
/* What the workers of bookings.c run: three items for each invoice. */
#include <stdlib.h>

__attribute__((noinline)) long total(int item, int price)
{
	__asm__ volatile("");
	return (long)item * price;
}

long tax(long amount); /* tax.c */

int main(int argc, char **argv)
{
	const int price = argc > 1 ? atoi(argv[1]) : 1;
	long sum = 0, taxes = 0;
	for (int item = 1; item <= 3; item++) {
		sum += total(item, price);
		taxes += tax(sum);
	}
	return sum != 6L * price || taxes > sum * 3;
}
