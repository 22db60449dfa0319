/* SPDX-License-Identifier: MIT */
/*
 * When prefetched data is still valid: patched pages, which /proc/PID/maps lists separately, do not make it stale; a new
 * library does.
 */
#include "pmodules/source/stopped_internal.h"

#include <criterion/criterion.h>

#define LIBC  "7f00128b1000-7f0012a07000 r-xp 00026000 fe:00 332835     /usr/lib/libc.so.6\n"
#define HEAP  "555555580000-5555555a1000 rw-p 00000000 00:00 0          [heap]\n"
#define AGENT "1389b5b36000-1389b5b3c000 r-xs 00000000 00:01 200923     /memfd:dynprobe (deleted)\n"

Test(current, pages_that_were_patched_are_the_same_code)
{
	cr_expect(dp_stopped_is_same_code(HEAP LIBC, AGENT
	                                  "7f00128b1000-7f00128cb000 r-xp 00026000 fe:00 332835     /usr/lib/libc.so.6\n"
	                                  "7f00128cb000-7f00128cd000 r-xp 00040000 fe:00 332835     /usr/lib/libc.so.6\n"
	                                  "7f00128cd000-7f0012a07000 r-xp 00042000 fe:00 332835     /usr/lib/libc.so.6\n" HEAP));
	cr_expect(dp_stopped_is_same_code("", HEAP AGENT));
}

Test(current, a_library_that_came_or_went_is_not)
{
	cr_expect_not(
	        dp_stopped_is_same_code(LIBC, LIBC "7f0013000000-7f0013001000 r-xp 00001000 fe:00 99     /usr/lib/late.so\n"));
	cr_expect_not(dp_stopped_is_same_code(LIBC, ""));
	cr_expect_not(dp_stopped_is_same_code("", LIBC));
}

Test(current, another_file_or_place_in_it_is_not)
{
	/* the same addresses, rebuilt: another inode */
	cr_expect_not(
	        dp_stopped_is_same_code(LIBC, "7f00128b1000-7f0012a07000 r-xp 00026000 fe:00 332836     /usr/lib/libc.so.6\n"));
	cr_expect_not(
	        dp_stopped_is_same_code(LIBC, "7f00128b1000-7f0012a07000 r-xp 00027000 fe:00 332835     /usr/lib/libc.so.6\n"));
	/* a neighbour of the same file, but not the bytes that follow */
	cr_expect_not(dp_stopped_is_same_code(LIBC,
	                                      "7f00128b1000-7f00128cb000 r-xp 00026000 fe:00 332835     /usr/lib/libc.so.6\n"
	                                      "7f00128cb000-7f0012a07000 r-xp 00026000 fe:00 332835     /usr/lib/libc.so.6\n"));
	cr_expect_not(dp_stopped_is_same_code(LIBC,
	                                      "7f00128b1000-7f00128cb000 r-xp 00026000 fe:00 332835     /usr/lib/libc.so.6\n"
	                                      "7f00128cc000-7f0012a07000 r-xp 00041000 fe:00 332835     /usr/lib/libc.so.6\n"));
}
