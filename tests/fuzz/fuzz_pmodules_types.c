/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of programs with false debug information: walks and prints types, runs expressions, and reads values from memory with
 * arbitrary contents. The input: which of the programs that the compilers made at the start (1 byte), where its thread is (1),
 * what its memory contains (1); then changes to the sections: which section (1 byte; plus 128: the rest of the input replaces its
 * contents), where (2), how many bytes (1), the bytes.
 *
 * Every input must end soon (-timeout=10) and with little memory (-rss_limit_mb=1024).
 */
#include "pmodules/capture/extract.h"
#include "tests/fuzz/damaged.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char in_c[] =
        "#include <complex.h>\n"
        "enum e { A, B = -2, C = 1 << 30 }; struct late; typedef int (*op)(struct late *, const char *[4], ...);\n"
        "struct s { int a; unsigned b : 5; long c : 37; struct s *next; char name[8]; union { long l; double d; }; op f; short "
        "m[2][3]; };\n"
        "struct s all[3]; static __thread int tls; volatile long sink; static double complex z; long double w; __int128 wide;\n"
        "op ops[2]; enum e mode; const volatile char *const words[3]; _Bool yes; struct late *hidden;\n"
        "static inline double twice(struct s *p, double n) { double m = p->a * n + 1.5; float f = (float)n / 3; sink = (long)m; "
        "return m; }\n"
        "__attribute__((noinline)) long work(struct s *p, int n, double d, float f, enum e e, struct s by_value) {\n"
        "long sum = 0; char vla[n + 1]; struct { int x, y; } pair = {n, e}, *q = &pair; double k = d * f, kept[2] = {d, k}; "
        "unsigned char c = n;\n"
        "for (int i = 0; i < n; i++) { struct s *r = &all[i % 3]; sum += (long)twice(r, i * k) + r->b; vla[i] = (char)i; tls += "
        "i; }\n"
        "sink = sum + (long)kept[1] + by_value.a + vla[n / 2] + q->x; return sum + (long)f + c; }\n"
        "int main(int c, char **v) { (void)v; struct s x = {c}; return (int)work(&x, c, c, c, B, x); }\n";
static const char in_cxx[] =
        "namespace ns { enum class mode : short { ON = -1, OFF }; struct base { int id; virtual ~base() {} }; struct left : "
        "virtual base { long l; };\n"
        "struct right : virtual base { char r[5]; }; struct both : left, right { int own : 3; static int shared; }; int "
        "both::shared = 4;\n"
        "template <class T, int N> struct box { T item[N]; box<T, N> *next; T box::*member; T (box::*method)(int) const; union { "
        "T t; char raw[4]; }; };\n"
        "typedef box<both *, 3> boxes; namespace { struct hidden { int &ref; int &&moved; decltype(nullptr) none; }; } inline "
        "namespace v1 { int x; } }\n"
        "ns::both one; ns::box<ns::mode, 2> two; ns::boxes many; thread_local int mark; volatile long sink; int ns_own; int "
        "&refer = ns_own;\n"
        "auto lambda = [](int a) { return a + (int)sink; };\n"
        "extern \"C\" __attribute__((noinline)) long work(ns::left *p, ns::both &b, ns::box<int, 2> by_value, ns::mode m, double "
        "d) {\n"
        "struct inner { ns::left *p; double twice; } i = {p, d * 2}; ns::hidden h = {ns_own, (int &&)ns_own, nullptr}; double "
        "never = d / 3;\n"
        "auto f = [&](int n) { return n + h.ref + b.id; }; sink = f(p->id) + (long)i.twice + lambda(by_value.item[0]); return "
        "sink + (int)m; }\n"
        "int main(int c, char **) { ns::box<int, 2> x = {}; return (int)work(&one, one, x, ns::mode::ON, c); }\n";

static const struct {
	const char *command, *suffix, *source;
} programs[] = {
        {"gcc -O2 -gdwarf-5", "c", in_c},
        {"gcc -O0 -gdwarf-4 -fdebug-types-section", "c", in_c},
        {"clang -O1 -gdwarf-5", "c", in_c},
        {"g++ -O2 -gdwarf-5", "cc", in_cxx},
        {"g++ -O0 -gdwarf-4", "cc", in_cxx},
        {"clang++ -O0 -gdwarf-4", "cc", in_cxx},
        {"g++ -O1 -gdwarf-5 -fdebug-types-section", "cc", in_cxx},
};
enum { PROGRAMS = sizeof(programs) / sizeof(*programs), PAGE = 4096 };
#define STACK UINT64_C(0x7ffd00000000)

static struct damaged variants[PROGRAMS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < PROGRAMS; i++)
		damaged_build(&variants[i], programs[i].command, programs[i].suffix, programs[i].source);
	return 0;
}

/* ---- the process -------------------------------------------------------------------------------------------------------- */

struct process {
	const struct damaged *program;
	uint64_t seed;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

/* Arbitrary pointers, strings, numbers, and endless lists. */
static uint64_t word_at(const struct process *p, uint64_t addr)
{
	const uint64_t h = mix(addr + p->seed * 8191), n = h >> 8;
	switch (h % 8) {
	case 0:
		return 0;
	case 1:
		return p->program->work + n % (p->program->end - p->program->work);
	case 2:
		return STACK + n % PAGE;
	case 3:
		return 0x404000 + n % PAGE;
	case 4:
		return UINT64_C(0x6f776f6c6c6548) >> n % 56;
	case 5:
		return n % 4;
	case 6:
		return addr & ~UINT64_C(7);
	default:
		return h;
	}
}

static size_t read_memory(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	uint8_t *to = buf;
	size_t done = 0;
	if (late)
		*late = false;
	while (done < n && addr + done >= PAGE && addr + done < UINT64_C(1) << 47 && mix((addr + done) / PAGE) % 4) {
		const uint64_t word = word_at(data, (addr + done) & ~UINT64_C(7));
		to[done] = (uint8_t)(word >> 8 * ((addr + done) % 8));
		done++;
	}
	return done;
}

static struct dp_stopped_thread thread_at(const struct process *p, unsigned step)
{
	const uint64_t length = p->program->end - p->program->work;
	struct dp_stopped_thread t = {.tid = 1, .state = 'S', .has_vector = true, .syscall = -1};
	uint64_t word[sizeof(t.regs) / 8];
	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
		word[i] = word_at(p, STACK + PAGE + 8 * i);
	memcpy(&t.regs, word, sizeof(t.regs));
	t.regs.rip = p->program->work + step * length / 256;
	t.regs.rsp = STACK;
	t.regs.fs_base = 0x404000;
	memcpy(t.xmm, word, sizeof(t.xmm) < sizeof(word) ? sizeof(t.xmm) : sizeof(word));
	return t;
}

/* ---- queries ------------------------------------------------------------------------------------------------------------ */

static void take(struct dp_error *err)
{
	if (err && err->tag == DP_TAG_INTERNAL)
		abort();
	dp_error_destroy(err);
}

static void ask_value(struct dp_value *v)
{
	struct dp_value *part = NULL;
	double real;
	uint64_t number;
	if (!v)
		return;
	take(dp_value_member(v, "next", &part));
	take(dp_value_member(v, "id", &part));
	take(dp_value_index(v, 1, &part));
	take(dp_value_cast(v, "struct s *", &part));
	take(dp_value_cast(v, "ns::box<int, 2>", &part));
	take(dp_value_container(v, "struct s", "name", &part));
	take(dp_value_read_int(v, &number));
	take(dp_value_read_real(v, &real));
	if (!dp_value_type_name(v) || !dp_value_base_type(v))
		abort();
}

static void ask_world(struct dp_debug_ctx *w, const struct dp_stopped_thread *t)
{
	static const char *const all[] = {"*", NULL}, *const types[] = {"struct s", "ns::both", "ns::boxes", "late *", "enum e"},
	                         *const globals[] = {"all", "one", "many", "ns::both::shared", "a.c::tls", "hidden"};
	const struct dp_extract_options options = {.globals = all, .tls = true, .limits = {.variables = 512, .elements = 16}};
	struct dp_extract *x = NULL;
	struct dp_snapshot *s = dp_snapshot_create();
	take(dp_extract_create(w, &options, &x));
	struct dp_snap_thread *into = NULL;
	if (x && s) {
		dp_extract_rehearse(x, t);
		into = dp_extract_thread(x, t, s);
		dp_extract_globals(x, s);
	}
	if (into)
		dp_extract_tls(x, t, into);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		ask_value(dp_value_at(w, types[i], 0x404010, NULL));
	for (size_t i = 0; i < sizeof(globals) / sizeof(*globals); i++)
		ask_value(dp_value_global(w, globals[i], NULL, NULL));
	dp_extract_destroy(x);
	dp_snapshot_destroy(s);
}

static void ask(const char *maps, struct process *p, unsigned step)
{
	struct dp_image *image = NULL;
	struct dp_debug_ctx *w = NULL;
	const struct dp_stopped_thread t = thread_at(p, step);
	struct dp_error *err = dp_image_create(maps, "", 0, &image);
	if (!err)
		err = dp_debug_ctx_create(image, read_memory, p, &w);
	if (w)
		ask_world(w, &t);
	dp_debug_ctx_destroy(w);
	dp_image_destroy(image);
	take(err);
}

/* ---- damage ------------------------------------------------------------------------------------------------------------- */

/* Appends the section's new contents to the file. */
static size_t replace(uint8_t *bytes, const struct damaged *v, unsigned k, size_t end, const uint8_t *data, size_t n)
{
	Elf64_Shdr h;
	if (!v->header[k] || end + n > v->size + DAMAGED_BEHIND)
		return end;
	memcpy(&h, bytes + v->header[k], sizeof(h));
	h.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	h.sh_offset = end;
	h.sh_size = n;
	memcpy(bytes + v->header[k], &h, sizeof(h));
	memcpy(bytes + end, data, n);
	return end + n;
}

static size_t change(uint8_t *bytes, const struct damaged *v, const uint8_t *data, size_t size)
{
	size_t end = v->size;
	while (size > 4) {
		const unsigned k = (data[0] & 127) % DAMAGED_SECTIONS;
		const bool is_whole = data[0] & 128;
		const size_t from = data[1] | (size_t)data[2] << 8;
		size_t n = data[3];
		data += 4;
		size -= 4;
		n = n < size ? n : size;
		if (is_whole)
			end = replace(bytes, v, k, end, data, n);
		for (size_t i = 0; !is_whole && i < n && from + i < v->len[k]; i++)
			bytes[v->at[k] + from + i] = data[i];
		data += n;
		size -= n;
	}
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char maps[256];
	if (size < 3)
		return 0;
	struct process p = {.program = &variants[data[0] % PROGRAMS], .seed = data[2]};
	uint8_t *bytes = malloc(p.program->size + DAMAGED_BEHIND);
	int fd = -1;
	if (bytes) {
		memcpy(bytes, p.program->bytes, p.program->size + DAMAGED_BEHIND);
		const size_t end = change(bytes, p.program, data + 3, size - 3);
		fd = damaged_file(bytes, end, maps, sizeof(maps));
	}
	if (fd >= 0)
		ask(maps, &p, data[1]);
	close(fd);
	free(bytes);
	return 0;
}
