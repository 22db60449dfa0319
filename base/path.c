/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <string.h>

const char *dp_path_last(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool dp_path_ends(const char *path, const char *typed)
{
	while (!strncmp(typed, "./", 2))
		typed += 2;
	const size_t n = strlen(path), m = strlen(typed);
	return m && m <= n && !strcmp(path + n - m, typed) && (m == n || path[n - m - 1] == '/' || *typed == '/');
}
