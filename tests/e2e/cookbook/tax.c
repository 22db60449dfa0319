/* SPDX-License-Identifier: MIT */
/* The library libtax.so.1 of bookings.c and invoice.c. */
__attribute__((noinline)) long tax(long amount)
{
	__asm__ volatile("");
	return amount / 5;
}
