/* SPDX-License-Identifier: MIT */
/* Scope guards: a resource is released when the variable that holds it goes out of scope. */
#ifndef DP_BASE_CLEANUP_H
#define DP_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void dp_free_guard(void *p)
{
	free(*(void **)p);
}

static inline void dp_close_guard(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void dp_fclose_guard(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void dp_closedir_guard(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define dp_auto_free __attribute__((cleanup(dp_free_guard)))
#define dp_auto_close __attribute__((cleanup(dp_close_guard)))
#define dp_auto_fclose __attribute__((cleanup(dp_fclose_guard)))
#define dp_auto_closedir __attribute__((cleanup(dp_closedir_guard)))

/* Moves the value out of a guarded variable and leaves `none` in it. */
#define dp_take(var, none) ({ __typeof__(var) dp_taken_ = (var); (var) = (none); dp_taken_; })

#endif
