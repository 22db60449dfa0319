/* SPDX-License-Identifier: MIT */
/* The cache returns what was stored, and nothing else: damaged, older and other users' files are not used. */
#include "probes/unwind/unwind_cache.h"
#include "probes/unwind/unwind_cache_trim.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/dynprobe-cache-XXXXXX";
static char dir[64];
static struct dp_unwind_key key;
static struct dp_unwind_rows rows;

static void setup(void)
{
	cr_assert(mkdtemp(base));
	snprintf(dir, sizeof(dir), "%s/a/b", base);
	key = (struct dp_unwind_key){dir, "0123456789abcdef0123456789abcdef01234567", 0x1000, 0x9000};
	dp_unwind_rows_init(&rows);
	for (uint32_t i = 0; i < 1001; i++) {
		struct dp_unwind_row row = {.kind = DP_UNWIND_REG, .reg = 4, .off = (int32_t)(8 * (i % 77))};

		dp_unwind_rows_add(&rows, i * 16, dp_unwind_rows_intern(&rows, &row));
	}
	dp_unwind_cache_store(&key, &rows);
}

static void teardown(void)
{
	char command[128];

	dp_unwind_rows_fini(&rows);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	cr_assert_eq(system(command), 0);
}

TestSuite(unwind_cache, .init = setup, .fini = teardown);

static bool loads(const struct dp_unwind_key *k)
{
	struct dp_unwind_rows back;
	bool found, same;

	dp_unwind_rows_init(&back);
	found = dp_unwind_cache_load(k, &back);
	same = back.n == rows.n && back.nrules == rows.nrules && !memcmp(back.pc, rows.pc, rows.n * sizeof(*rows.pc)) &&
	       !memcmp(back.row, rows.row, rows.n * sizeof(*rows.row)) &&
	       !memcmp(back.rule, rows.rule, rows.nrules * sizeof(*rows.rule));
	cr_assert(found ? same : back.nrules == 1 && back.n == 0);
	dp_unwind_rows_fini(&back);
	return found;
}

/* The only file of the cache. */
static void file_path(char path[PATH_MAX])
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	cr_assert(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, PATH_MAX, "%s/%s", dir, e->d_name);
			n++;
		}
	closedir(d);
	cr_assert_eq(n, 1, "temporary files stay behind");
}

Test(unwind_cache, stored_rows_come_back)
{
	cr_assert(loads(&key));
}

/* ---- its size ------------------------------------------------------------------------------------------------------------- */

static void put_file(const char *name, off_t size, time_t ago)
{
	const struct timespec then[2] = {{time(NULL) - ago, 0}, {time(NULL) - ago, 0}};
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	const int fd = open(path, O_WRONLY | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_not(ftruncate(fd, size));
	cr_assert_not(futimens(fd, then));
	close(fd);
}

static bool has(const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

Test(unwind_cache, what_was_not_used_for_longest_goes_first)
{
	char path[PATH_MAX];
	struct stat st;
	file_path(path);
	cr_assert_not(stat(path, &st));
	put_file("1-1.unwind", 3000, 5000);
	put_file("2-1.unwind", 3000, 9000);
	put_file("3-1.unwind", 3000, 1000);
	put_file("theirs", 1 << 20, 100000);
	dp_unwind_cache_trim(dir, 100000);
	cr_expect(has("1-1.unwind") && has("2-1.unwind") && has("3-1.unwind"), "it is small enough");
	dp_unwind_cache_trim(dir, (uint64_t)(st.st_size + 9000 - 4500) * 4 / 3); /* so that two are too many */
	cr_expect_not(has("2-1.unwind"));
	cr_expect_not(has("1-1.unwind"));
	cr_expect(has("3-1.unwind") && has("theirs"));
	cr_expect(loads(&key));
}

Test(unwind_cache, stores_keep_it_small)
{
	put_file("1-1.unwind", DP_UNWIND_CACHE_BYTES + 1, 9000);
	for (int i = 0; i < 4000 && has("1-1.unwind"); i++) /* one of 16, by chance */
		dp_unwind_cache_store(&key, &rows);
	cr_expect_not(has("1-1.unwind"));
	cr_expect(loads(&key));
}

Test(unwind_cache, use_is_noted)
{
	char path[PATH_MAX];
	struct stat st;
	file_path(path);
	const struct timespec then[2] = {{time(NULL) - 90000, 0}, {time(NULL) - 90000, 0}};
	cr_assert_not(utimensat(AT_FDCWD, path, then, 0));
	cr_assert(loads(&key));
	cr_assert_not(stat(path, &st));
	cr_expect_lt(time(NULL) - st.st_mtime, 60);
}

Test(unwind_cache, temporary_files_of_the_killed_go_after_a_day)
{
	put_file("1-1.unwind.aB3xY9", 10, 90000);
	put_file("2-1.unwind.aB3xY9", 10, 80000);
	dp_unwind_cache_trim(dir, 100000);
	cr_expect_not(has("1-1.unwind.aB3xY9"));
	cr_expect(has("2-1.unwind.aB3xY9"), "somebody may be writing it");
}

Test(unwind_cache, private_to_the_user)
{
	char path[PATH_MAX];
	struct stat st;

	file_path(path);
	cr_assert(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0700);
	cr_assert(stat(path, &st) == 0 && (st.st_mode & 077) == 0);
	cr_assert_eq(chmod(path, 0666), 0); /* another user may have written it */
	cr_assert_not(loads(&key));
}

Test(unwind_cache, other_keys_find_nothing)
{
	struct dp_unwind_key other = key;

	other.build_id = "0123456789abcdef0123456789abcdef01234568";
	cr_assert_not(loads(&other));
	other = key;
	other.start += 0x1000;
	cr_assert_not(loads(&other));
	other = key;
	other.end += 0x1000;
	cr_assert_not(loads(&other));
}

Test(unwind_cache, unusable_keys_are_refused)
{
	static const char *const ids[] = {"", "12", "../../../../etc/passwd-and-more", "0123456789ABCDEF0123"};
	struct dp_unwind_key other = key;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		other.build_id = ids[i];
		dp_unwind_cache_store(&other, &rows);
		cr_assert_not(loads(&other));
	}
	file_path(path); /* only one */
	other = key;
	other.dir = NULL;
	dp_unwind_cache_store(&other, &rows);
	cr_assert_not(loads(&other));
	other.dir = "/proc/self/nowhere";
	dp_unwind_cache_store(&other, &rows);
	cr_assert_not(loads(&other));
}

Test(unwind_cache, any_damage_is_seen_and_repaired)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	file_path(path);
	cr_assert_eq(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at += 1 + at / 8) {
		uint8_t byte;

		fd = open(path, O_RDWR);
		cr_assert(pread(fd, &byte, 1, at) == 1);
		byte ^= 0x10;
		cr_assert(pwrite(fd, &byte, 1, at) == 1);
		close(fd);
		cr_assert_not(loads(&key), "byte %ld", (long)at);
		dp_unwind_cache_store(&key, &rows);
		cr_assert(loads(&key));
	}
}

Test(unwind_cache, cut_and_grown_files)
{
	char path[PATH_MAX];
	struct stat st;

	file_path(path);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(truncate(path, st.st_size + 1), 0);
	cr_assert_not(loads(&key));
	cr_assert_eq(truncate(path, st.st_size - 1), 0);
	cr_assert_not(loads(&key));
	cr_assert_eq(truncate(path, 0), 0);
	cr_assert_not(loads(&key));
}

Test(unwind_cache, symlinks_are_not_followed)
{
	char path[PATH_MAX], moved[PATH_MAX + 8];

	file_path(path);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	cr_assert(rename(path, moved) == 0 && symlink(moved, path) == 0);
	cr_assert_not(loads(&key));
}
