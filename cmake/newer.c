/* SPDX-License-Identifier: MIT */
/* names.inc lists the constants, from the C library's headers: ERROR(ENOENT), SIGNAL(HUP), ... */
#include "cmake/newer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

const char *strerrorname_np(int number)
{
	switch (number) {
	case 0:
		return "0";
#define SIGNAL(name)
#define ERROR(name) \
	case name:  \
		return #name;
#include "names.inc"
#undef SIGNAL
#undef ERROR
	default:
		return NULL;
	}
}

const char *strerrordesc_np(int number)
{
	return strerrorname_np(number) ? strerror(number) : NULL; /* in the user's language */
}

const char *sigabbrev_np(int number)
{
	switch (number) {
#define ERROR(name)
#define SIGNAL(name)    \
	case SIG##name: \
		return #name;
#include "names.inc"
#undef SIGNAL
#undef ERROR
	default:
		return NULL;
	}
}

const char *sigdescr_np(int number)
{
	return sigabbrev_np(number) ? strsignal(number) : NULL;
}
