/* SPDX-License-Identifier: MIT */
/* Core files: valid, truncated, and wrong in each important byte. Each is made here, with one page of memory and two threads. */
#include "pmodules/source/core.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#define BASE  UINT64_C(0x7f0000000000)
#define FIRST 4242

struct made {
	uint8_t bytes[32768];
	size_t n;
};

static void put(struct made *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void note(struct made *m, uint32_t type, const void *desc, size_t n)
{
	const Elf64_Nhdr h = {5, (Elf64_Word)n, type};
	static const char name[8] = "CORE";
	put(m, &h, sizeof(h));
	put(m, name, sizeof(name));
	put(m, desc, n);
	m->n = (m->n + 3) & ~(size_t)3;
}

static void notes(struct made *m)
{
	struct elf_prstatus st = {.pr_pid = FIRST, .pr_cursig = SIGSEGV};
	struct elf_prpsinfo ps = {.pr_pid = FIRST - 2, .pr_fname = "made", .pr_psargs = "made up"};
	siginfo_t si = {.si_signo = SIGSEGV, .si_code = 1};
	si.si_addr = (void *)0x10;
	struct user_regs_struct regs = {.rip = 0x401000, .rsp = BASE + 64, .rbx = 7, .orig_rax = UINT64_MAX};
	memcpy(st.pr_reg, &regs, sizeof(regs));
	note(m, NT_PRSTATUS, &st, sizeof(st));
	note(m, NT_PRPSINFO, &ps, sizeof(ps));
	note(m, NT_SIGINFO, &si, sizeof(si));
	struct {
		uint64_t count, page, start, end, offset;
		char name[16];
	} files = {1, 4096, BASE + 8192, BASE + 12288, 0, "/proc/self/exe"};
	note(m, NT_FILE, &files, sizeof(files));
	regs.orig_rax = 202; /* waits in futex */
	regs.rax = (unsigned long long)-512;
	regs.rdi = 99;
	st.pr_pid = FIRST - 1;
	memcpy(st.pr_reg, &regs, sizeof(regs));
	note(m, NT_PRSTATUS, &st, sizeof(st));
}

static struct made make(void)
{
	struct made m = {.n = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr)}, all = {0};
	notes(&m);
	const size_t end = m.n;
	Elf64_Ehdr e = {
	        .e_type = ET_CORE, .e_machine = EM_X86_64, .e_phoff = sizeof(e), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3};
	memcpy(e.e_ident, ELFMAG "\2\1\1", SELFMAG + 3);
	const size_t memory = (end + 4095) & ~(size_t)4095;
	const Elf64_Phdr p[3] = {
	        {.p_type = PT_NOTE, .p_offset = sizeof(e) + sizeof(p), .p_filesz = end - sizeof(e) - sizeof(p)},
	        {.p_type = PT_LOAD,
	         .p_flags = PF_R | PF_W,
	         .p_offset = memory,
	         .p_vaddr = BASE,
	         .p_filesz = 4096,
	         .p_memsz = 8192},
	        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = memory + 4096, .p_vaddr = BASE + 8192, .p_memsz = 4096}};
	put(&all, &e, sizeof(e));
	put(&all, p, sizeof(p));
	put(&all, m.bytes + all.n, end - all.n);
	all.n = memory;
	memset(all.bytes + memory, 0x5a, 4096);
	all.n += 4096;
	return all;
}

static struct dp_error *open_bytes(const void *bytes, size_t n, struct dp_core **ret)
{
	char path[] = "/tmp/dp-core-XXXXXX";
	const int fd = mkstemp(path);
	cr_assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	struct dp_error *err = dp_core_open(path, NULL, ret);
	close(fd);
	unlink(path);
	return err;
}

/* Calls everything that reads a core. */
static void use(struct dp_core *c)
{
	struct dp_stopped_thread *t = NULL;
	struct dp_image *image = NULL;
	size_t n;
	uint8_t buf[9000];
	struct dp_error *err = dp_core_threads(c, &t, &n);
	cr_assert_null(err);
	free(t);
	dp_core_read(c, BASE, buf, sizeof(buf));
	dp_core_read(c, BASE + 8190, buf, sizeof(buf));
	dp_core_read(c, 0, buf, sizeof(buf));
	err = dp_core_image(c, &image);
	if (!err)
		dp_image_destroy(image);
	dp_error_destroy(err);
}

Test(core, threads_siginfo_and_memory_are_as_written)
{
	const struct made m = make();
	struct dp_core *c = NULL;
	struct dp_stopped_thread *t = NULL;
	size_t n = 0;
	uint8_t buf[8192];
	cr_assert_null(open_bytes(m.bytes, m.n, &c));
	cr_assert_null(dp_core_threads(c, &t, &n));
	cr_assert_eq(n, 2);
	cr_expect_eq(t[0].tid, FIRST - 1);
	cr_expect(t[0].syscall == 202 && t[0].args[0] == 99 && !t[0].is_fault);
	cr_expect_eq(t[1].tid, FIRST);
	cr_expect(t[1].is_fault && t[1].siginfo.si_signo == SIGSEGV && t[1].siginfo.si_addr == (void *)0x10);
	cr_expect(t[1].regs.rbx == 7 && t[1].regs.rip == 0x401000 && t[1].syscall == -1);
	cr_expect_eq(dp_core_pid(c), FIRST - 2);
	cr_expect_str_eq(dp_core_comm(c), "made");
	cr_expect_eq(dp_core_read(c, BASE + 4090, buf, 100), 6, "data that is not in the dump is not read from elsewhere");
	cr_expect_eq(buf[5], 0x5a);
	cr_expect_eq(dp_core_read(c, BASE + 8192, buf, 4), 4, "text comes from its file");
	cr_expect(!memcmp(buf, ELFMAG, 4));
	free(t);
	dp_core_close(c);
}

Test(core, one_that_is_cut_off_anywhere_is_refused_or_used_as_far_as_it_goes_DP_BAD_CORE)
{
	const struct made m = make();
	size_t refused = 0;
	for (size_t n = 0; n < m.n; n += n < 8192 ? 37 : 509) {
		struct dp_core *c = NULL;
		struct dp_error *err = open_bytes(m.bytes, n, &c);
		refused += err != NULL;
		if (err)
			cr_expect_eq(err->tag, DP_TAG_BAD_CORE, "%s", err->message);
		else
			use(c);
		dp_error_destroy(err);
		dp_core_close(c);
	}
	cr_expect_gt(refused, 10);
}

Test(core, wrong_words_anywhere_do_no_harm)
{
	static const uint64_t wrong[] = {0, 1, UINT64_MAX, UINT64_C(1) << 31, UINT64_C(1) << 47, UINT64_C(0x7fffffffffffffff)};
	const struct made m = make();
	for (size_t at = 4; at + 8 <= 2200 && at + 8 <= m.n; at += 4)
		for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i += 1 + at % 3) {
			struct made bad = m;
			struct dp_core *c = NULL;
			memcpy(bad.bytes + at, &wrong[i], at % 8 ? 4 : 8);
			struct dp_error *err = open_bytes(bad.bytes, bad.n, &c);
			if (!err)
				use(c);
			dp_error_destroy(err);
			dp_core_close(c);
		}
}

/* A small file, but 2 GiB to a reader that reads each of its segments. */
Test(core, notes_that_are_named_many_times_are_not_read_many_times_DP_BAD_CORE)
{
	enum { SEGMENTS = 2048, NOTES = 1 << 20, AT = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr) };
	uint8_t *bytes = calloc(1, AT + NOTES);
	Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                .e_type = ET_CORE,
	                .e_machine = EM_X86_64,
	                .e_phoff = sizeof(e),
	                .e_phentsize = sizeof(Elf64_Phdr),
	                .e_phnum = SEGMENTS};
	const Elf64_Phdr p = {.p_type = PT_NOTE, .p_offset = AT, .p_filesz = NOTES};
	struct dp_core *c = NULL;
	memcpy(bytes, &e, sizeof(e));
	for (size_t i = 0; i < SEGMENTS; i++)
		memcpy(bytes + sizeof(e) + i * sizeof(p), &p, sizeof(p));
	struct dp_error *err = open_bytes(bytes, AT + NOTES, &c);
	cr_assert(err && err->tag == DP_TAG_BAD_CORE && strstr(err->message, "256 MiB of notes"), "%s", err ? err->message : "");
	dp_error_destroy(err);
	free(bytes);
}

Test(core, no_core_at_all_is_said_DP_BAD_CORE)
{
	struct dp_core *c = NULL;
	struct dp_error *err = dp_core_open("/proc/self/exe", NULL, &c);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_BAD_CORE);
	cr_expect(strstr(err->message, "another type"), "%s", err->message);
	dp_error_destroy(err);
	err = dp_core_open("/", NULL, &c);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_BAD_CORE);
	dp_error_destroy(err);
}
