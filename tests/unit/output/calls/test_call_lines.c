/* SPDX-License-Identifier: MIT */
#include "helper_output.h"
#include "output/calls/call_stream.h"
#include "output/calls/data.h"
#include "output/calls/names.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#define NAMES_SIZE 64

/* ---- events ---------------------------------------------------------------------------------------------------------- */

enum { FIELDS = 24, CLASSES = 12, FIRST = 33 };
struct made {
	struct dp_field field[FIELDS];
	char name[FIELDS][NAMES_SIZE];
	struct dp_fields fields;
	struct dp_call_at at;
};
struct bytes {
	const void *at;
	size_t n;
};
struct call {
	uint64_t word[DP_CALL_ARGS];
	const char *text[DP_CALL_ARGS];
	struct bytes data[DP_CALL_ARGS], first;
	int64_t result;
};

static void add(struct made *m, enum dp_type type, size_t size, const char *fmt, const struct dp_call_arg *arg)
{
	const size_t i = m->fields.n++;
	cr_assert_lt(i, FIELDS);
	snprintf(m->name[i], NAMES_SIZE, fmt, arg ? (int)arg->len : 0, arg ? arg->name : "");
	m->field[i] = (struct dp_field){.name = m->name[i], .type = type, .size = (uint32_t)size, .source = DP_SRC_REG};
	m->fields.field = m->field;
}

/* The fields that a probe on the call has. */
static void make(struct made *m, int32_t nr, bool exit)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(nr, arg);
	*m = (struct made){.at = {.is = true, .exit = exit, .nr = nr}};
	if (n < 0) {
		if (!exit)
			add(m, DP_TYPE_UINT, 8, "nr%.*s", NULL);
		for (unsigned i = 0; i < DP_CALL_ARGS; i++) {
			const struct dp_call_arg word = {
			        .name = (const char *[]){"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"}[i], .len = 4};
			add(m, DP_TYPE_UINT, 8, "%.*s", &word);
		}
	}
	for (int i = 0; i < n; i++) {
		add(m, DP_TYPE_UINT, 8, arg[i].kind == DP_CALL_STRING ? "%.*s_address" : "%.*s", &arg[i]);
		if (arg[i].kind == DP_CALL_STRING)
			add(m, DP_TYPE_STRING, 256, "%.*s", &arg[i]);
		if (dp_call_data_bytes(&arg[i]))
			add(m, DP_TYPE_BYTES, dp_call_data_bytes(&arg[i]), "%.*s_data", &arg[i]);
		if (dp_call_has_buffers(&arg[i]))
			add(m, DP_TYPE_BYTES, FIRST, "%.*s_first", &arg[i]);
	}
	if (exit)
		add(m, DP_TYPE_INT, 8, "retval%.*s", NULL);
}

static void put_padded(struct dp_buf *b, const struct bytes *data, size_t size)
{
	uint8_t *to = dp_buf_grow(b, size);
	memcpy(to, data->at ? data->at : "", data->n);
}

static void put_payload(struct dp_buf *b, const struct made *m, const struct call *c)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(m->at.nr, arg);
	if (n < 0 && !m->at.exit)
		put_u64(b, SYS_dup2);
	for (int i = 0; n < 0 && i < (int)DP_CALL_ARGS; i++)
		put_u64(b, c->word[i]);
	for (int i = 0; i < n; i++) {
		put_u64(b, c->word[i]);
		if (arg[i].kind == DP_CALL_STRING)
			put_text(b, c->text[i] ? c->text[i] : "");
		if (dp_call_data_bytes(&arg[i]))
			put_padded(b, &c->data[i], dp_call_data_bytes(&arg[i]));
		if (dp_call_has_buffers(&arg[i]))
			put_padded(b, &c->first, FIRST);
	}
	if (m->at.exit)
		put_u64(b, (uint64_t)c->result);
}

/* ---- a writer -------------------------------------------------------------------------------------------------------- */

struct run {
	struct made made[CLASSES];
	struct dp_event_class class[CLASSES];
	size_t n;
	struct dp_writer *w;
	FILE *to;
	char *text;
	size_t size;
};

/* Classes 2 * i and 2 * i + 1 are the entry and the exit of the calls in `nrs`, which -2 ends. */
static void begin(struct run *r, const int32_t *nrs, bool json)
{
	*r = (struct run){0};
	for (; *nrs != -2; nrs++)
		for (int exit = 0; exit < 2; exit++, r->n++) {
			make(&r->made[r->n], *nrs, exit);
			r->class[r->n] = (struct dp_event_class){
			        .name = "c", .spec = "c", .fields = &r->made[r->n].fields, .call = &r->made[r->n].at};
		}
	r->to = open_memstream(&r->text, &r->size);
	must(json ? dp_json_writer_create(r->to, r->class, r->n, &r->w)
	          : dp_text_writer_create(r->to, false, r->class, r->n, &r->w));
}

static void event(struct run *r, unsigned class, pid_t tid, uint64_t ns, const struct call *c)
{
	struct dp_buf b = {0};
	put_payload(&b, &r->made[class], c);
	struct dp_event e = make_event(ns, &b);
	e.probe = class;
	e.tid = tid;
	dp_writer_event(r->w, &e);
	dp_buf_fini(&b);
}

static char *end(struct run *r)
{
	must(dp_writer_close(r->w));
	fclose(r->to);
	return r->text;
}

/* The lines without their times. */
static void expect(struct run *r, const char *const *lines)
{
	char *text = end(r), *rest = text;
	for (; *lines; lines++) {
		char *line = strsep(&rest, "\n"), *at = line ? strchr(line, ' ') : NULL;
		cr_assert(at, "no line for %s", *lines);
		cr_expect_str_eq(at + 1, *lines);
	}
	cr_expect_str_eq(rest ? rest : "", "");
	free(text);
}
#define EXPECT(r, ...) expect(r, (const char *const[]){__VA_ARGS__, NULL})
#define CALLS(...)     ((const int32_t[]){__VA_ARGS__, -2})
#define AT             "worker[101] "

/* ---- one call -------------------------------------------------------------------------------------------------------- */

static void one(int32_t nr, const struct call *c, const char *line)
{
	struct run r;
	char text[512];
	begin(&r, CALLS(nr), false);
	event(&r, 0, 101, 1000, c);
	event(&r, 1, 101, 13300, c);
	snprintf(text, sizeof(text), AT "%s <12.3us>", line);
	EXPECT(&r, text);
}

Test(call_lines, flags_and_errors_by_name)
{
	struct call c = {{(uint64_t)AT_FDCWD, 0x7000, O_RDONLY | O_CLOEXEC, 0xbad}, {NULL, "/etc/\npasswd"}, .result = 3};
	one(SYS_openat, &c, "openat(AT_FDCWD, \"/etc/\\npasswd\", O_RDONLY|O_CLOEXEC) = 3");
	c.word[0] = (uint32_t)AT_FDCWD;
	c.word[2] = O_RDWR | O_CREAT | O_TRUNC | 0x40000000;
	c.word[3] = 0644;
	c.result = -2;
	one(SYS_openat, &c,
	    "openat(AT_FDCWD, \"/etc/\\npasswd\", O_RDWR|O_CREAT|O_TRUNC|0x40000000, 0644) = -1 ENOENT (No such file or "
	    "directory)");
	const struct call map = {{0, 4096, 3, 0x22, UINT32_MAX, 0}, .result = 0x7f0000001000};
	one(SYS_mmap, &map, "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000001000");
	one(SYS_kill, &(struct call){{77, 34}, .result = 0}, "kill(77, SIGRT_2) = 0");
	one(SYS_fcntl, &(struct call){{3, F_DUPFD, 9}, .result = 9}, "fcntl(3, F_DUPFD, 9) = 9");
	one(SYS_fcntl, &(struct call){{3, F_GETFL, 0xbad}, .result = 1}, "fcntl(3, F_GETFL) = 0x1 (flags O_WRONLY)");
	one(SYS_fcntl, &(struct call){{3, F_GETFD, 0xbad}, .result = 0}, "fcntl(3, F_GETFD) = 0");
	one(SYS_fcntl, &(struct call){{3, F_SETFD, 1}, .result = 0}, "fcntl(3, F_SETFD, FD_CLOEXEC) = 0");
	one(SYS_setsockopt, &(struct call){{3, IPPROTO_TCP, TCP_NODELAY, 0, 4}, .result = 0},
	    "setsockopt(3, SOL_TCP, TCP_NODELAY, NULL, 4) = 0");
	one(SYS_setsockopt, &(struct call){{3, 77, 1, 0, 4}, .result = 0}, "setsockopt(3, 77, 1, NULL, 4) = 0");
}

Test(call_lines, buffers_show_what_was_transferred)
{
	static const char sent[33] = "\177ELF\2\1\1\0000 and a longer text behi", got[33] = "abcdefghij";
	one(SYS_write, &(struct call){{1, 0x7000, 5}, .data[1] = {sent, 33}, .result = 5}, "write(1, \"\\177ELF\\2\", 5) = 5");
	one(SYS_write, &(struct call){{1, 0x7000, 9}, .data[1] = {sent, 33}, .result = 9},
	    "write(1, \"\\177ELF\\2\\1\\1\\0000\", 9) = 9");
	one(SYS_write, &(struct call){{1, 0x7000, 90}, .data[1] = {sent, 33}, .result = -11},
	    "write(1, \"\\177ELF\\2\\1\\1\\0000 and a longer text behi\"..., 90) = -1 EAGAIN (Resource temporarily unavailable)");
	one(SYS_read, &(struct call){{0, 0x7000, 4096}, .data[1] = {got, 33}, .result = 3}, "read(0, \"abc\", 4096) = 3");
	one(SYS_read, &(struct call){{0, 0x7000, 4096}, .data[1] = {got, 33}, .result = -9},
	    "read(0, 0x7000, 4096) = -1 EBADF (Bad file descriptor)");
}

Test(call_lines, structures_by_member)
{
	const struct stat st = {.st_mode = S_IFREG | 0644, .st_size = 42}, tty = {.st_mode = S_IFCHR | 0620, .st_rdev = 0x8803};
	const struct timespec ts = {5, 7};
	const struct pollfd fds[8] = {{3, POLLIN | POLLOUT, POLLIN}, {4, POLLPRI, 0}};
	const struct sockaddr_un un = {AF_UNIX, "/run/x"};
	one(SYS_fstat, &(struct call){{3, 0x7000}, .data[1] = {&st, sizeof(st)}},
	    "fstat(3, {st_mode=S_IFREG|0644, st_size=42, ...}) = 0");
	one(SYS_fstat, &(struct call){{3, 0x7000}, .data[1] = {&tty, sizeof(tty)}},
	    "fstat(3, {st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0x3), ...}) = 0");
	one(SYS_fstat, &(struct call){{3, 0x7000}, .data[1] = {&st, sizeof(st)}, .result = -9},
	    "fstat(3, 0x7000) = -1 EBADF (Bad file descriptor)");
	one(SYS_nanosleep, &(struct call){{0x7000, 0}, .data[0] = {&ts, sizeof(ts)}},
	    "nanosleep({tv_sec=5, tv_nsec=7}, NULL) = 0");
	one(SYS_poll, &(struct call){{0x7000, 2, UINT32_MAX}, .data[0] = {fds, sizeof(fds)}, .result = 1},
	    "poll([{fd=3, events=POLLIN|POLLOUT, revents=POLLIN}, {fd=4, events=POLLPRI}], 2, -1) = 1");
	one(SYS_poll, &(struct call){{0x7000, 9, 0}, .data[0] = {fds, sizeof(fds[0])}, .result = 0}, /* more than was recorded */
	    "poll([{fd=3, events=POLLIN|POLLOUT, revents=POLLIN}, {fd=0, events=0}, {fd=0, events=0}, {fd=0, events=0}, "
	    "{fd=0, events=0}, {fd=0, events=0}, {fd=0, events=0}, {fd=0, events=0}, ...], 9, 0) = 0 (Timeout)");
	one(SYS_connect, &(struct call){{3, 0x7000, 9}, .data[1] = {&un, sizeof(un)}},
	    "connect(3, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 9) = 0");
}

Test(call_lines, addresses_are_as_long_as_the_kernel_says)
{
	const struct sockaddr_un un = {AF_UNIX, "stale"};
	const int len = 2;
	one(SYS_accept,
	    &(struct call){
	            .word = {3, 0x6000, 0x7000}, .data = {[1] = {&un, sizeof(un)}, [2] = {&len, sizeof(len)}}, .result = 4},
	    "accept(3, {sa_family=AF_UNIX}, [2]) = 4");
}

Test(call_lines, the_first_of_several_buffers)
{
	const struct iovec parts[] = {{(void *)0x7000, 5}, {(void *)0x8000, 60}};
	const struct bytes at = {parts, sizeof(parts)}, first = {"hello, there", 13};
	one(SYS_writev, &(struct call){.word = {1, 0x6000, 2}, .data[1] = at, .first = first, .result = 65},
	    "writev(1, [{iov_base=\"hello\", iov_len=5}, {iov_base=0x8000, iov_len=60}], 2) = 65");
	one(SYS_readv, &(struct call){.word = {1, 0x6000, 2}, .data[1] = at, .first = first, .result = 3},
	    "readv(1, [{iov_base=\"hel\", iov_len=5}, {iov_base=0x8000, iov_len=60}], 2) = 3");
	one(SYS_socket, &(struct call){.word = {AF_INET, SOCK_STREAM, IPPROTO_TCP}, .result = 3},
	    "socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3");
	one(SYS_socket, &(struct call){.word = {AF_UNIX, SOCK_DGRAM, 0}, .result = 3}, "socket(AF_UNIX, SOCK_DGRAM, 0) = 3");
}

Test(call_lines, null_and_unknown_calls)
{
	one(SYS_utimensat, &(struct call){{3, 0, 0, 0}, .text[1] = "x"}, "utimensat(3, \"x\", NULL, 0) = 0");
	struct run r;
	begin(&r, CALLS(DP_CALL_ANY), false);
	event(&r, 0, 101, 1000, &(struct call){.word = {4, 5}});
	event(&r, 1, 101, 2000, &(struct call){.word = {4, 5}, .result = 5});
	event(&r, 1, 101, 3000, &(struct call){.word = {4, 5}, .result = 5});
	EXPECT(&r, AT "dup2(4, 5) = 5 <1us>", AT "<... syscall resumed>) = 5");
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------- */

static const struct call a = {{3}, .result = 0}, b = {{4}, .result = 0}, failed = {{3}, .result = -4};
enum { CLOSE = 0, FSYNC = 2, EXIT_GROUP = 4 };

static void begin_pairs(struct run *r)
{
	begin(r, CALLS(SYS_close, SYS_fsync, SYS_exit_group), false);
}

Test(call_lines, threads_do_not_mix)
{
	struct run r;
	begin_pairs(&r);
	event(&r, CLOSE, 101, 1000, &a);
	event(&r, CLOSE, 102, 1100, &b);
	event(&r, CLOSE + 1, 101, 1500, &a);
	event(&r, CLOSE + 1, 102, 1900, &b);
	EXPECT(&r, AT "close(3) = 0 <500ns>", "worker[102] close(4) = 0 <800ns>");
}

Test(call_lines, a_handler_interrupts_a_call)
{
	struct run r;
	begin_pairs(&r);
	event(&r, FSYNC, 101, 1000, &a);
	event(&r, CLOSE, 101, 2000, &b);
	event(&r, CLOSE + 1, 101, 3000, &b);
	event(&r, FSYNC + 1, 101, 5000, &failed);
	EXPECT(&r, AT "fsync(3 <unfinished ...>", AT "close(4) = 0 <1us>",
	       AT "<... fsync resumed>) = -1 EINTR (Interrupted system call) <4us>");
}

Test(call_lines, an_exit_with_other_arguments_is_of_another_call)
{
	struct run r;
	begin_pairs(&r);
	event(&r, CLOSE, 101, 1000, &a);
	event(&r, CLOSE + 1, 101, 2000, &b);
	EXPECT(&r, AT "close(3 <unfinished ...>", AT "<... close resumed>) = 0");
}

/* The exit of one call and the entry of the next may be lost, with the same arguments. */
Test(call_lines, after_a_loss_a_pair_has_no_duration)
{
	struct run r;
	begin_pairs(&r);
	event(&r, CLOSE, 101, 1000, &a);
	dp_writer_gap(r.w);
	event(&r, CLOSE + 1, 101, 900000, &a);
	event(&r, CLOSE, 101, 901000, &a);
	event(&r, CLOSE + 1, 101, 902000, &a);
	EXPECT(&r, AT "close(3) = 0", AT "close(3) = 0 <1us>");
}

Test(call_lines, calls_that_last_are_shown_before_they_end)
{
	struct run r;
	const uint64_t late = 2000 + DP_CALL_LASTS_NS;
	begin_pairs(&r);
	event(&r, FSYNC, 101, 1000, &a);
	event(&r, CLOSE, 102, late, &b);
	event(&r, CLOSE + 1, 102, late + 1000, &b);
	event(&r, FSYNC + 1, 101, late + 2000, &a);
	event(&r, FSYNC, 101, late + 3000, &a);
	dp_writer_until(r.w, late + 4000 + DP_CALL_LASTS_NS);
	event(&r, FSYNC + 1, 101, late + 9000 + DP_CALL_LASTS_NS, &a);
	event(&r, EXIT_GROUP, 101, late + 10000 + DP_CALL_LASTS_NS, &a);
	EXPECT(&r, AT "fsync(3 <unfinished ...>", "worker[102] close(4) = 0 <1us>", AT "<... fsync resumed>) = 0 <300ms>",
	       AT "fsync(3 <unfinished ...>", AT "<... fsync resumed>) = 0 <300ms>", AT "exit_group(3) = ?");
}

Test(call_lines, what_has_not_ended_at_the_end)
{
	struct run r;
	begin_pairs(&r);
	event(&r, CLOSE + 1, 101, 1000, &a);
	event(&r, FSYNC, 102, 2000, &b);
	EXPECT(&r, AT "<... close resumed>) = 0", "worker[102] fsync(4 <unfinished ...>");
}

Test(call_lines, json_has_the_parts)
{
	struct run r;
	begin(&r, CALLS(SYS_close), true);
	event(&r, 0, 101, 1000, &a);
	event(&r, 1, 101, 2000, &failed);
	char *text = end(&r);
	cr_expect(strstr(text, "\"call\":\"close\",\"args_text\":\"3\"}\n"), "%s", text);
	cr_expect(
	        strstr(text, "\"call\":\"close\",\"args_text\":\"3\",\"result\":-1,\"error\":\"EINTR\",\"duration_ns\":1000}\n"),
	        "%s", text);
	free(text);
}

/* ---- tables ---------------------------------------------------------------------------------------------------------- */

Test(call_lines, all_that_is_described_is_known)
{
	for (int32_t nr = 0; nr < (int32_t)DP_CALL_END; nr++) {
		struct dp_call_arg arg[DP_CALL_ARGS + 1] = {0};
		int n = dp_call_args(nr, arg);
		n += n >= 0 && dp_call_result(nr, &arg[n]);
		for (int i = 0; i < n; i++) {
			const struct dp_call_arg *g = &arg[i];
			const char *name = dp_call_name((uint64_t)nr);
			struct dp_buf text = {0};
			const uint8_t zeros[1024] = {0};
			const struct dp_call_memory memory = {
			        .bytes = zeros, .n = dp_call_data_bytes(g), .count = 16, .list = g->count.len};
			if (!g->means.len)
				continue;
			if (g->in || g->out)
				cr_expect(dp_call_data(g) && dp_put_call_memory(&text, &g->means, &memory), "%s %.*s", name,
				          (int)g->len, g->name);
			else
				cr_expect(dp_call_names_find(g->means.text, g->means.len) ||
				                  dp_put_call_meaning(&text, &g->means, 1),
				          "%s %.*s", name, (int)g->len, g->name);
			dp_buf_fini(&text);
		}
	}
	for (size_t i = 0; i < dp_call_nnames; i++)
		cr_expect(dp_call_names[i].n, "%s", dp_call_names[i].set);
}

Test(call_lines, conditions_and_counts_name_arguments_of_the_call)
{
	for (int32_t nr = 0; nr < (int32_t)DP_CALL_END; nr++) {
		struct dp_call_arg arg[DP_CALL_ARGS];
		const int n = dp_call_args(nr, arg);
		for (int i = 0; i < n; i++) {
			const struct dp_call_word words[] = {
			        {arg[i].only.text, arg[i].only.len ? strcspn(arg[i].only.text, "&:") : 0}, arg[i].count};
			for (size_t k = 0; k < 2; k++) {
				bool found = !words[k].len || dp_call_word_is(&words[k], "ret") || words[k].text[0] <= '9';
				for (int j = 0; j < n; j++)
					found |= arg[j].len == words[k].len && !memcmp(arg[j].name, words[k].text, arg[j].len);
				cr_expect(found, "%s: %.*s", dp_call_name((uint64_t)nr), (int)words[k].len, words[k].text);
			}
		}
	}
}
