/* SPDX-License-Identifier: MIT */
/* Which processes map a module: this one, which maps libc and its own executable. */
#include "base/path.h"
#include "injector/tracee/proc/mappers.h"
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static enum dp_mapper is(const char *module)
{
	const struct dp_mapper_search search = {.module = &module, .n = module != NULL};
	return dp_mapper_of(getpid(), &search);
}

static void own_path(char *path)
{
	const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	cr_assert(n > 0);
	path[n] = 0;
}

Test(mappers, names_sonames_patterns_and_paths)
{
	char own[PATH_MAX];
	own_path(own);
	cr_expect_eq(is(own), DP_MAPPER_YES);
	cr_expect_eq(is(dp_path_last(own)), DP_MAPPER_YES);
	cr_expect_eq(is("libc.so.6"), DP_MAPPER_YES);
	cr_expect_eq(is("libc.so"), DP_MAPPER_YES);
	cr_expect_eq(is("libc.s[o].6"), DP_MAPPER_YES);
	cr_expect_eq(is("/*/libc.so.6"), DP_MAPPER_YES);
	cr_expect_eq(is(NULL), DP_MAPPER_YES, "any program");
	cr_expect_eq(is("libc"), DP_MAPPER_YES);
	cr_expect_eq(is("lib"), DP_MAPPER_NO);
	cr_expect_eq(is("libc.so.66"), DP_MAPPER_NO);
	cr_expect_eq(is("no-such-library.so"), DP_MAPPER_NO);
	cr_expect_eq(is("/none/libc.so.6"), DP_MAPPER_NO);
}

Test(mappers, path_is_one_file_also_after_it_was_replaced)
{
	char path[] = "/tmp/dp-mappers-XXXXXX", other[64];
	const int fd = mkstemp(path);
	cr_assert(fd >= 0 && !ftruncate(fd, 4096));
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(map != MAP_FAILED);
	cr_expect_eq(is(path), DP_MAPPER_DATA, "a loader maps the code last");
	cr_assert(!mprotect(map, 4096, PROT_READ | PROT_WRITE));
	cr_expect_eq(is(path), DP_MAPPER_YES, "its code may be in anonymous pages");
	cr_assert(!mprotect(map, 4096, PROT_READ | PROT_EXEC));
	cr_expect_eq(is(path), DP_MAPPER_YES);
	snprintf(other, sizeof(other), "%s.new", path);
	const int fresh = open(other, O_CREAT | O_RDWR, 0600);
	cr_assert(fresh >= 0 && !rename(other, path));
	cr_expect_eq(is(path), DP_MAPPER_NO, "the name has another file now");
	cr_expect_eq(is(dp_path_last(path)), DP_MAPPER_YES, "a name is that of any file");
	unlink(path);
	cr_expect_eq(is(path), DP_MAPPER_NO);
}

static void note(const char *path, void *data)
{
	struct stat *st = data;
	cr_expect(!stat(path, st), "%s", path);
}

Test(mappers, files_can_be_opened)
{
	const char *module = "libc.so.6";
	struct stat st = {0};
	const struct dp_mapper_search search = {.module = &module, .n = 1, .file = note, .data = &st};
	cr_assert_eq(dp_mapper_of(getpid(), &search), DP_MAPPER_YES);
	cr_expect(S_ISREG(st.st_mode));
}

Test(mappers, digest_changes_with_the_files)
{
	uint64_t before = 0, same = 0, after = 0;
	struct dp_mapper_search search = {.digest = &before};
	cr_assert_eq(dp_mapper_of(getpid(), &search), DP_MAPPER_YES);
	search.digest = &same;
	dp_mapper_of(getpid(), &search);
	cr_expect_eq(before, same);
	const int fd = open("/etc/passwd", O_RDONLY);
	cr_assert(fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	search.digest = &after;
	dp_mapper_of(getpid(), &search);
	cr_expect_neq(before, after);
}

Test(mappers, tools_and_those_that_have_ended)
{
	cr_expect(dp_mapper_is_tool(getpid()));
	cr_expect_not(dp_mapper_has_ours(getpid()));
	const pid_t child = fork();
	if (!child)
		_exit(0);
	siginfo_t info;
	cr_assert(!waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT)); /* a zombie */
	const struct dp_mapper_search any = {.n = 0};
	cr_expect_eq(dp_mapper_of(child, &any), DP_MAPPER_NO);
	waitpid(child, NULL, 0);
	cr_expect_eq(dp_mapper_of(child, &any), DP_MAPPER_NO);
}

Test(mappers, paths_of_modules)
{
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "libssl.so.3"));
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "libssl.so"));
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "libssl*"));
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "/usr/*/libssl.so.3"));
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "/usr/lib/libssl.so.3"));
	cr_expect_not(dp_module_path_matches("/usr/lib/libssl.so.3", "/lib/libssl.so.3"));
	cr_expect(dp_module_path_matches("/usr/lib/libssl.so.3", "libssl"));
	cr_expect(dp_module_path_matches("/usr/lib/libc-2.31.so", "libc"));
	cr_expect_not(dp_module_path_matches("/usr/lib/libc-client.so.2007e", "libc"));
	cr_expect_not(dp_module_path_matches("/usr/lib/libcrypto.so.3", "libc"));
	cr_expect_not(dp_module_path_matches("/usr/lib/ssl.so.3", "ssl"));
	cr_expect_not(dp_module_path_matches("/usr/lib/libssl.so.30", "libssl.so.3"));
}
