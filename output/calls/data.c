/* SPDX-License-Identifier: MIT */
#include "output/calls/data.h"

#include "output/calls/headers.h"
#include "output/calls/names.h"
#include "output/calls/sockets.h"
#include "output/format/put.h"

#include <stddef.h>

#undef sa_handler

struct dp_kernel_sigaction { /* libc's own is another */
	uint64_t sa_handler, sa_flags, sa_restorer, sa_mask;
};

struct dp_kernel_clone_args { /* as far as every kernel with clone3 has it: CLONE_ARGS_SIZE_VER0 */
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

struct call_member {
	const char *name, *means;
	size_t at, size;
	enum {
		ALWAYS,
		IF_SET,
		IF_NOT_THE_LAST,
	} shown;
};
/* The members of all structs, each struct's between its own and the next name. */
static const struct call_member members[] = {
#define STRUCT(data, type)                       {.name = NULL, .means = #data},
#define MEMBER_IF(type, member, meaning, shown)  {#member, meaning, offsetof(type, member), sizeof(((type *)0)->member), shown},
#define MEMBER(data, type, member, meaning)      MEMBER_IF(type, member, #meaning, ALWAYS)
#define MEMBER_SET(data, type, member, meaning)  MEMBER_IF(type, member, #meaning, IF_SET)
#define MEMBER_ELSE(data, type, member, meaning) MEMBER_IF(type, member, #meaning, IF_NOT_THE_LAST)
#define REST(data)                               {.name = NULL, .means = NULL},
#include "output/calls/structs.def"
#undef STRUCT
#undef MEMBER
#undef MEMBER_SET
#undef MEMBER_ELSE
#undef MEMBER_IF
#undef REST
};
#define MEMBERS (sizeof(members) / sizeof(*members))

static uint64_t load(const uint8_t *bytes, size_t size, bool is_signed)
{
	uint64_t v = 0;
	memcpy(&v, bytes, size < sizeof(v) ? size : sizeof(v));
	if (is_signed && size == 4)
		return (uint64_t)(int64_t)(int32_t)v;
	return is_signed && size == 2 ? (uint64_t)(int64_t)(int16_t)v : v;
}

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

static void put_octal(struct dp_buf *b, uint64_t v)
{
	dp_buf_printf(b, v ? "0%llo" : "%llo", (unsigned long long)v);
}

static bool put_filemode(struct dp_buf *b, uint64_t v)
{
	const struct dp_call_names *types = dp_call_names_find("filetype", strlen("filetype"));
	const char *type = dp_call_name_of(types, v & S_IFMT);
	if (type)
		dp_buf_printf(b, "%s|", type);
	put_octal(b, v & ~(uint64_t)(type ? S_IFMT : 0));
	return true;
}

static bool put_rlim(struct dp_buf *b, uint64_t v)
{
	if (v == RLIM_INFINITY)
		dp_put_str(b, "RLIM64_INFINITY");
	else if (v > 1024 && v % 1024 == 0)
		dp_buf_printf(b, "%llu*1024", (unsigned long long)v / 1024);
	else
		dp_put_dec(b, v);
	return true;
}

/* The kernel's real-time signals begin at 32; libc keeps the first ones. */
static void put_signal(struct dp_buf *b, uint64_t n, const char *before)
{
	const struct dp_call_names *names = dp_call_names_find("signal", strlen("signal"));
	const char *name = dp_call_name_of(names, n);
	if (name || n < 32 || n > 64)
		dp_buf_printf(b, name ? "%s%s" : "%s%s%llu", before, name ? name + strlen("SIG") : "", (unsigned long long)n);
	else if (n == 32)
		dp_buf_printf(b, "%sRTMIN", before);
	else
		dp_buf_printf(b, "%sRT_%u", before, (unsigned)n - 32);
}

static bool put_signum(struct dp_buf *b, uint64_t v)
{
	if (!v || v > 64)
		return false;
	put_signal(b, v, "SIG");
	return true;
}

/* [INT TERM], or without few of them: ~[KILL STOP]. */
static bool put_sigset(struct dp_buf *b, uint64_t v)
{
	const bool most = __builtin_popcountll(v) > 40;
	const char *between = most ? "~[" : "[";
	uint64_t shown = most ? ~v : v;
	if (!shown)
		dp_put_str(b, between);
	for (; shown; shown &= shown - 1) {
		dp_put_str(b, between);
		put_signal(b, (uint64_t)__builtin_ctzll(shown) + 1, "");
		between = " ";
	}
	dp_put_str(b, "]");
	return true;
}

static bool put_wstatus(struct dp_buf *b, uint64_t v)
{
	const int status = (int)v;
	const struct dp_call_names *names = dp_call_names_find("signal", strlen("signal"));
	const int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status);
	const char *name = dp_call_name_of(names, (uint64_t)sig);
	if (WIFEXITED(status))
		dp_buf_printf(b, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSTOPPED(status))
		dp_buf_printf(b, "[{WIFSTOPPED(s) && WSTOPSIG(s) == %s}]", name ? name : "?");
	else if (WIFSIGNALED(status))
		dp_buf_printf(b, "[{WIFSIGNALED(s) && WTERMSIG(s) == %s%s}]", name ? name : "?",
		              WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	else
		dp_buf_printf(b, "[%#x]", (unsigned)status);
	return true;
}

static bool put_device(struct dp_buf *b, uint64_t v)
{
	dp_buf_printf(b, "makedev(%#llx, %#llx)", (unsigned long long)((v >> 8 & 0xfff) | (v >> 32 & 0xfffff000)),
	              (unsigned long long)((v & 0xff) | (v >> 12 & 0xffffff00)));
	return true;
}

static bool put_pointer(struct dp_buf *b, uint64_t v)
{
	if (v)
		dp_put_hex(b, v);
	else
		dp_put_str(b, "NULL");
	return true;
}

static bool put_mode(struct dp_buf *b, uint64_t v)
{
	dp_buf_printf(b, "%#03llo", (unsigned long long)v);
	return true;
}

static bool put_signed(struct dp_buf *b, uint64_t v)
{
	dp_put_signed(b, (int64_t)v);
	return true;
}

static bool put_unsigned(struct dp_buf *b, uint64_t v)
{
	dp_put_dec(b, v);
	return true;
}

/* How many descriptors are ready. */
static bool put_timeout(struct dp_buf *b, uint64_t v)
{
	dp_put_signed(b, (int64_t)v);
	dp_put_str(b, v ? "" : " (Timeout)");
	return true;
}

static bool put_hex(struct dp_buf *b, uint64_t v)
{
	if (v)
		dp_put_hex(b, v);
	else
		dp_put_str(b, "0");
	return true;
}

static const struct {
	const char *word;
	bool (*put)(struct dp_buf *b, uint64_t v);
	bool is_signed;
} numbers[] = {
        {"int", put_signed, true},      {"long", put_signed, true},        {"uint", put_unsigned, false},
        {"ulong", put_unsigned, false}, {"hex", put_hex, false},           {"pointer", put_pointer, false},
        {"mode", put_mode, false},      {"filemode", put_filemode, false}, {"rlim", put_rlim, false},
        {"sigset", put_sigset, false},  {"wstatus", put_wstatus, false},   {"device", put_device, false},
        {"signum", put_signum, false},  {"timeout", put_timeout, false},
};

static size_t number_kind(const struct dp_call_word *means)
{
	size_t i = 0;
	while (i < sizeof(numbers) / sizeof(*numbers) && !dp_call_word_is(means, numbers[i].word))
		i++;
	return i;
}

bool dp_put_call_meaning(struct dp_buf *b, const struct dp_call_word *means, uint64_t v)
{
	const size_t kind = number_kind(means);
	if (kind < sizeof(numbers) / sizeof(*numbers))
		return numbers[kind].put(b, v);
	const struct dp_call_names *names = dp_call_names_find(means->text, means->len);
	return names && dp_put_call_names(b, names, v);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static bool put_struct(struct dp_buf *b, const struct dp_call_word *name, const uint8_t *bytes, size_t n);

static void put_member(struct dp_buf *b, const struct call_member *m, const uint8_t *bytes)
{
	const struct dp_call_word means = {m->means, strlen(m->means)};
	const size_t kind = number_kind(&means);
	dp_buf_printf(b, "%s=", m->name);
	if (!strcmp(m->means, "chars")) {
		dp_put_call_text(b, bytes, strnlen((const char *)bytes, m->size), false);
		return;
	}
	if (put_struct(b, &means, bytes, m->size))
		return;
	const bool is_signed = kind < sizeof(numbers) / sizeof(*numbers) && numbers[kind].is_signed;
	const uint64_t v = load(bytes, m->size, is_signed);
	if (!dp_put_call_meaning(b, &means, v))
		put_hex(b, v);
}

static bool is_shown(const struct call_member *m, const uint8_t *bytes)
{
	const struct call_member *of = m->shown == IF_NOT_THE_LAST ? m - 1 : m;
	return m->shown == ALWAYS || !load(bytes + of->at, of->size, false) == (m->shown == IF_NOT_THE_LAST);
}

/* The members that `n` bytes have. */
static bool put_struct(struct dp_buf *b, const struct dp_call_word *name, const uint8_t *bytes, size_t n)
{
	size_t i = 0;
	const char *between = "{";
	while (i < MEMBERS && !(!members[i].name && members[i].means && dp_call_word_is(name, members[i].means)))
		i++;
	if (i == MEMBERS)
		return false;
	for (i++; i < MEMBERS && members[i].name; i++) {
		const struct call_member *m = &members[i];
		if (m->at + m->size > n || !is_shown(m, bytes))
			continue;
		dp_put_str(b, between);
		put_member(b, m, bytes + m->at);
		between = ", ";
	}
	dp_put_str(b, i < MEMBERS && !members[i].means ? ", ...}" : "}");
	return true;
}

static size_t element_size(const struct dp_call_word *means)
{
	const struct dp_call_arg as = {.means = *means, .in = true};
	const struct dp_call_data *data = dp_call_data(&as);
	return data ? data->size : 0;
}

static bool put_element(struct dp_buf *b, const struct dp_call_word *means, const uint8_t *bytes, size_t size)
{
	const size_t kind = number_kind(means);
	if (put_struct(b, means, bytes, size))
		return true;
	return kind < sizeof(numbers) / sizeof(*numbers) && size <= sizeof(uint64_t) &&
	       numbers[kind].put(b, load(bytes, size, numbers[kind].is_signed));
}

static bool put_buffer(struct dp_buf *b, const uint8_t *iovec, const struct dp_call_memory *m)
{
	const uint64_t len = load(iovec + offsetof(struct iovec, iov_len), sizeof(size_t), false);
	const uint64_t used = len < m->used ? len : m->used;
	dp_put_str(b, "{iov_base=");
	dp_put_call_text(b, m->first, used < m->nfirst ? used : m->nfirst, used > m->nfirst);
	dp_buf_printf(b, ", iov_len=%llu}", (unsigned long long)len);
	return true;
}

bool dp_put_call_memory(struct dp_buf *b, const struct dp_call_word *means, const struct dp_call_memory *m)
{
	const size_t size = element_size(means), start = b->len;
	if (dp_call_word_is(means, "text")) {
		dp_put_call_text(b, m->bytes, m->count < m->n ? m->count : m->n, m->count > m->n);
		return true;
	}
	if (dp_call_word_is(means, "path")) {
		dp_put_visible(b, m->bytes, strnlen((const char *)m->bytes, m->count < m->n ? m->count : m->n), '"');
		return true;
	}
	if (dp_call_word_is(means, "sockaddr"))
		return dp_put_sockaddr(b, m->bytes, m->count && m->count < m->n ? m->count : m->n);
	if (!size || m->n < size)
		return false;
	if (!m->list)
		return put_element(b, means, m->bytes, size);
	for (size_t i = 0; i < m->count && (i + 1) * size <= m->n; i++) {
		dp_put_str(b, i ? ", " : "[");
		if (m->first && !i ? !put_buffer(b, m->bytes, m) : !put_element(b, means, m->bytes + i * size, size)) {
			b->len = start;
			return false;
		}
	}
	dp_put_str(b, !m->count ? "[]" : m->count * size > m->n ? ", ...]" : "]");
	return true;
}
