/* SPDX-License-Identifier: MIT */
/* The perf map of a process (here: the test itself): which files are read, and when again. */
#include "helper_elf.h"
#include "probes/image/function/generated.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static void remove_map(void)
{
	unlink(path);
}

static void write_map(const char *mode, const char *text)
{
	FILE *f = fopen(path, mode);
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

/* An image without mappings: every address is one of generated code. */
static struct dp_image *image_of_process(pid_t pid)
{
	struct dp_image *image = NULL;
	cr_assert_null(dp_image_create("", "", pid, &image));
	return image;
}

static void start(void)
{
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	remove_map();
}

TestSuite(perf_map, .init = start, .fini = remove_map, .timeout = 60);

static const char *name_at(struct dp_image *image, uint64_t addr)
{
	static char name[256];
	struct dp_perf_name n;
	const char *file;
	if (!dp_image_generated_at(image, dp_addr_of(addr), &n, &file))
		return "none";
	cr_assert_str_eq(file, path + strlen("/tmp/"));
	snprintf(name, sizeof(name), "%s", n.name);
	return name;
}

Test(perf_map, grows_while_it_is_read)
{
	struct dp_image *image = image_of_process(getpid());
	write_map("w", "1000 10 foo\n2000 10 b");
	cr_assert_str_eq(name_at(image, 0x1004), "foo");
	cr_assert_str_eq(name_at(image, 0x2004), "none");
	write_map("a", "ar\n3000 10 third\n");
	cr_assert_str_eq(name_at(image, 0x2004), "bar");
	cr_assert_str_eq(name_at(image, 0x3004), "third");
	cr_assert_str_eq(name_at(image, 0x1004), "foo");
	dp_image_destroy(image);
}

Test(perf_map, written_anew_is_read_anew)
{
	struct dp_image *image = image_of_process(getpid());
	write_map("w", "1000 10 foo\n2000 10 bar\n");
	cr_assert_str_eq(name_at(image, 0x2004), "bar");
	write_map("w", "3000 10 new\n");
	cr_assert_str_eq(name_at(image, 0x3004), "new");
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	unlink(path);
	write_map("w", "4000 10 newer\n");
	cr_assert_str_eq(name_at(image, 0x4004), "newer");
	dp_image_destroy(image);
}

Test(perf_map, a_line_longer_than_what_is_read_at_once)
{
	static char text[200000];
	struct dp_image *image = image_of_process(getpid());
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "1000 10 ", 8);
	text[sizeof(text) - 2] = '\n';
	write_map("w", text);
	write_map("a", "2000 10 bar\n");
	cr_assert_str_eq(name_at(image, 0x2004), "bar");
	dp_image_destroy(image);
}

Test(perf_map, links_fifos_and_folders_are_not_followed)
{
	struct dp_image *image;
	char real[80];
	snprintf(real, sizeof(real), "%s.real", path);
	FILE *f = fopen(real, "w");
	fputs("1000 10 foo\n", f);
	fclose(f);
	cr_assert_eq(symlink(real, path), 0);
	image = image_of_process(getpid());
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	dp_image_destroy(image);
	unlink(path);
	unlink(real);
	cr_assert_eq(mkfifo(path, 0600), 0);
	image = image_of_process(getpid());
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	dp_image_destroy(image);
	unlink(path);
	cr_assert_eq(mkdir(path, 0700), 0);
	image = image_of_process(getpid());
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	dp_image_destroy(image);
	rmdir(path);
}

Test(perf_map, another_users_file_is_not_read)
{
	struct dp_image *image = image_of_process(getpid());
	if (geteuid())
		cr_skip_test("only root can give files away");
	write_map("w", "1000 10 foo\n");
	cr_assert_eq(chown(path, 12345, 12345), 0);
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	dp_image_destroy(image);
}

Test(perf_map, what_was_read_is_known_when_the_process_has_ended)
{
	const pid_t pid = fork();
	if (!pid)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	write_map("w", "1000 10 foo\n");
	struct dp_image *image = image_of_process(pid), *next = image_of_process(pid);
	cr_assert_str_eq(name_at(image, 0x1004), "foo");
	write_map("a", "2000 10 bar\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert_str_eq(name_at(image, 0x2004), "bar", "the file is still open");
	dp_image_perf_inherit(next, image);
	dp_image_destroy(image);
	cr_assert_str_eq(name_at(next, 0x2004), "bar");
	dp_image_destroy(next);
}

Test(perf_map, without_a_process_there_is_none)
{
	struct dp_image *image = image_of_process(0);
	write_map("w", "1000 10 foo\n");
	cr_assert_str_eq(name_at(image, 0x1004), "none");
	dp_image_destroy(image);
}

Test(perf_map, code_of_a_file_is_not_renamed)
{
	struct dp_image *image = image_of_self();
	char text[64];
	snprintf(text, sizeof(text), "%lx 10 mine\n", (unsigned long)(uintptr_t)remove_map);
	write_map("w", text);
	cr_assert_str_eq(name_at(image, (uintptr_t)remove_map), "none");
	dp_image_destroy(image);
}
