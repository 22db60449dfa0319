/* SPDX-License-Identifier: MIT */
/* The stream files of a trace: packets, headers and lanes, as they are in the file and as babeltrace2 reads them. */
#include "helper_output.h"
#include "output/ctf/ctf_files.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PAGE 4096u

static struct dp_fields fields;
static struct dp_event_class class[40];
static char names[40][8];
static char *dir;
static struct dp_writer *w;

/* 40 classes with one 64-bit field. */
static void set_up(void)
{
	fields = make_fields((const char *const[]){"reg:rdi", NULL});
	for (int i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "p%d", i);
		class[i] = (struct dp_event_class){.name = names[i], .spec = "main", .fields = &fields};
	}
	dir = make_dir();
	must(dp_ctf_writer_create(dir, class, 40, &w));
}

static void tear_down(void)
{
	remove_tree(dir);
	dp_fields_fini(&fields);
}

TestSuite(ctf_streams, .init = set_up, .fini = tear_down);

static void put(uint64_t lane, unsigned probe, uint64_t ns, pid_t tid)
{
	const uint64_t value = ns ^ probe;
	dp_writer_event(w, &(struct dp_event){.ns = ns,
	                                      .pid = 100,
	                                      .tid = tid,
	                                      .lane = lane,
	                                      .comm = "worker",
	                                      .probe = probe,
	                                      .payload = (const uint8_t *)&value,
	                                      .len = sizeof(value)});
}

struct file {
	uint8_t *data;
	size_t len;
};

static struct file file_of(unsigned number)
{
	struct file f = {malloc((size_t)16 << 20), 0};
	char *path = NULL;
	cr_assert_geq(asprintf(&path, "%s/events_%u", dir, number), 0);
	FILE *from = fopen(path, "re");
	cr_assert_not_null(from, "%s", path);
	f.len = fread(f.data, 1, (size_t)16 << 20, from);
	fclose(from);
	free(path);
	return f;
}

/* The header of the packet at *at, which moves to the next one. */
static struct dp_ctf_packet next_packet(const struct file *f, size_t *at)
{
	struct dp_ctf_packet p;
	cr_assert_leq(*at + sizeof(p), f->len, "a cut packet at %zu", *at);
	memcpy(&p, f->data + *at, sizeof(p));
	cr_assert_eq(p.magic, DP_CTF_MAGIC);
	cr_assert_leq(p.content_bits, p.packet_bits);
	cr_assert_leq(p.begin, p.end);
	*at += p.packet_bits / 8;
	cr_assert_leq(*at, f->len, "a cut packet");
	return p;
}

static size_t packets_of(unsigned number)
{
	struct file f = file_of(number);
	size_t n = 0;
	for (size_t at = 0; at < f.len; n++)
		next_packet(&f, &at);
	free(f.data);
	return n;
}

static char *read_back(const char *what)
{
	int status;
	char *text = run(&status, "babeltrace2 --clock-cycles '%s' %s", dir, what);
	cr_assert_eq(status, 0, "%s", text);
	return text;
}

static void expect_text(const char *what, const char *wanted)
{
	char *text = read_back(what);
	cr_expect_str_eq(text, wanted);
	free(text);
}

Test(ctf_streams, an_event_of_one_field_takes_little_more_than_twelve_bytes)
{
	for (uint64_t i = 0; i < 100000; i++)
		put(7, 0, 1000 + i, 101);
	must(dp_writer_close(w));
	struct file f = file_of(1);
	cr_expect_lt(f.len, 100000u * 125 / 10, "%zu bytes", f.len);
	free(f.data);
	expect_text("| wc -l", "100000\n");
}

/* The short header has 27 bits of the time and ids up to 30. */
Test(ctf_streams, long_headers_where_short_ones_do_not_reach)
{
	static const uint64_t gap[] = {
	        0, (1u << 27) - 1, 1u << 27, (1u << 27) + 1, 1, UINT64_C(1) << 33, (UINT64_C(3) << 27) + 5};
	static const unsigned id[] = {30, 31, 39, 0};
	uint64_t ns = (UINT64_C(1) << 40) + 12345;
	struct dp_buf wanted = {0};
	for (size_t i = 0; i < sizeof(gap) / sizeof(*gap); i++)
		for (size_t k = 0; k < sizeof(id) / sizeof(*id); k++) {
			ns += gap[i];
			put(7, id[k], ns, 101);
			dp_buf_printf(&wanted, "[%020lu] dynprobe:p%u 0x%lX\n", ns, id[k], ns ^ id[k]);
		}
	must(dp_writer_close(w));
	cr_expect_eq(packets_of(1), 1);
	expect_text("| sed -E 's/^(\\[[0-9]*\\]) .*(dynprobe:p[0-9]*):.*rdi = (0x[0-9A-F]*).*/\\1 \\2 \\3/'",
	            dp_buf_str(&wanted));
	dp_buf_fini(&wanted);
}

Test(ctf_streams, the_first_event_of_a_packet_is_at_its_begin)
{
	put(7, 0, 1000, 101);
	must(dp_writer_flush(w));
	put(7, 0, UINT64_C(1) << 34, 101);
	must(dp_writer_close(w));
	struct file f = file_of(1);
	size_t at = 0;
	cr_expect_eq(next_packet(&f, &at).begin, 1000);
	const struct dp_ctf_packet second = next_packet(&f, &at);
	cr_expect_eq(second.begin, UINT64_C(1) << 34);
	cr_expect_eq(second.content_bits / 8, sizeof(second) + sizeof(struct dp_ctf_short) + 8);
	free(f.data);
}

/* A kill can cut a write between pages. */
Test(ctf_streams, no_packet_crosses_a_page)
{
	srand(5);
	for (uint64_t i = 0; i < 30000; i++) {
		put(7, (unsigned)rand() % 40, 1000 + (i << 20), 101 + rand() % 100 / 99);
		if (!(rand() % 100))
			must(dp_writer_flush(w));
	}
	must(dp_writer_close(w));
	struct file f = file_of(1);
	uint64_t n = 0;
	for (size_t at = 0; at < f.len; n++) {
		const size_t from = at;
		const struct dp_ctf_packet p = next_packet(&f, &at);
		cr_assert_eq(from / PAGE, (at - 1) / PAGE, "packet %lu from %zu to %zu", n, from, at);
		cr_assert_eq(p.seq, n);
	}
	free(f.data);
	expect_text("| wc -l", "30000\n");
}

Test(ctf_streams, a_packet_has_the_events_of_one_thread)
{
	static const pid_t tid[] = {101, 101, 102, 102, 101, 101};
	for (uint64_t i = 0; i < 6; i++)
		put(7, 0, 1000 + i, tid[i]);
	must(dp_writer_close(w));
	struct file f = file_of(1);
	size_t at = 0;
	for (int i = 0; i < 6; i += 2)
		cr_expect_eq(next_packet(&f, &at).tid, tid[i]);
	cr_expect_eq(at, f.len);
	free(f.data);
	expect_text("| grep -o 'vtid = [0-9]*' | tr -d '\\n'", "vtid = 101vtid = 101vtid = 102vtid = 102vtid = 101vtid = 101");
}

Test(ctf_streams, lanes_have_streams_of_their_own_which_readers_merge)
{
	for (uint64_t i = 0; i < 1000; i++)
		put(UINT64_C(3) << 32 | 9, 0, 1001 + 2 * i, 101);
	for (uint64_t i = 0; i < 1000; i++)
		put(4, 1, 1000 + 2 * i, 102);
	must(dp_writer_close(w));
	cr_expect_eq(packets_of(1), packets_of(2));
	expect_text("| wc -l", "2000\n");
	expect_text("| sort -C && echo in order", "in order\n");
}

/* The writer's descriptors are few, and so are the files that a reader must open at once. */
Test(ctf_streams, many_lanes_share_streams_and_descriptors)
{
	struct rlimit limit, few;
	const unsigned lanes = 3 * DP_CTF_FILES_MANY, rounds = 3;
	char *path = NULL;
	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit){300, limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	for (unsigned i = 0; i < rounds * lanes; i++) {
		put(i % lanes, 0, 1000 + i, (pid_t)(1000 + i % lanes));
		if (i % 1000 == 999)
			must(dp_writer_flush(w));
	}
	must(dp_writer_close(w));
	setrlimit(RLIMIT_NOFILE, &limit);
	expect_text("| wc -l", "4608\n");
	cr_assert_geq(asprintf(&path, "%s/events_%u", dir, DP_CTF_FILES_MANY + 1), 0);
	cr_expect_null(fopen(path, "re"), "%s", path);
	free(path);
	expect_text(
	        "| awk '{ for (i = 1; i < NF; i++) if ($i == \"vtid\") t = $(i + 2); n = NR - 1; if (t + 0 != 1000 + n % 1536) "
	        "print n, t }'",
	        "");
}

/* A stream that is used again must not make an older event newer. */
Test(ctf_streams, lanes_with_older_events_do_not_share_streams)
{
	const unsigned lanes = DP_CTF_FILES_MANY + 10;
	for (unsigned i = 0; i < lanes; i++)
		put(i, 0, 100000 - i, 101);
	must(dp_writer_close(w));
	cr_expect_eq(packets_of(lanes), 1);
	for (unsigned i = 1; i <= lanes; i++) {
		struct file f = file_of(i);
		size_t at = 0;
		cr_expect_eq(next_packet(&f, &at).begin, 100000 - (i - 1));
		free(f.data);
	}
}

/* What was lost is noted while the rings still have older events. */
Test(ctf_streams, losses_do_not_move_the_times_of_events)
{
	put(7, 0, 1000, 101);
	dp_writer_lost(w, 5);
	must(dp_writer_flush(w));
	put(7, 0, 2000, 101);
	dp_writer_lost(w, 9);
	must(dp_writer_flush(w));
	put(7, 0, 3000, 101);
	must(dp_writer_close(w));
	struct file f = file_of(0);
	size_t at = 0;
	cr_expect_eq(next_packet(&f, &at).discarded, 0);
	cr_expect_eq(next_packet(&f, &at).discarded, 5);
	cr_expect_eq(next_packet(&f, &at).discarded, 9);
	cr_expect_eq(at, f.len);
	free(f.data);
	f = file_of(1);
	for (at = 0; at < f.len;)
		cr_expect_eq(next_packet(&f, &at).discarded, 0);
	free(f.data);
	expect_text("2>/dev/null | cut -c1-22", "[00000000000000001000]\n[00000000000000002000]\n[00000000000000003000]\n");
	char *text = read_back("2>&1 >/dev/null | grep -o 'discarded [0-9]* events' | tr -d '\\n'");
	cr_expect_str_eq(text, "discarded 5 eventsdiscarded 4 events");
	free(text);
}

Test(ctf_streams, an_idle_stream_goes_on_where_it_stopped)
{
	put(7, 0, 1000, 101);
	for (int i = 0; i < 100; i++)
		must(dp_writer_flush(w));
	put(7, 0, 2000, 101);
	must(dp_writer_close(w));
	cr_expect_eq(packets_of(1), 2);
	expect_text("| cut -c1-22", "[00000000000000001000]\n[00000000000000002000]\n");
}

Test(ctf_streams, a_directory_with_a_stream_has_a_trace)
{
	int status;
	struct dp_writer *other = NULL;
	put(7, 0, 1000, 101);
	must(dp_writer_close(w));
	free(run(&status, "rm '%s/metadata'", dir));
	struct dp_error *err = dp_ctf_writer_create(dir, class, 40, &other);
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, "events_1 exists: the directory already contains a trace"), "%s", err->message);
	dp_error_destroy(err);
}
