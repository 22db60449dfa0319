/* SPDX-License-Identifier: MIT */
/*
 * The program that generated expressions use: variables of every kind, the probed function, and macros for what the language
 * defines and C leaves undefined. gcc compiles it with the cases of generate.py as a library, or with -DPROGRAM as a program that
 * prints its own results.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum color { RED, GREEN = 5, BLUE = 0x7ffffff0 }; /* unsigned */
enum sign { MINUS = -3, ZERO, PLUS = 70000 };
typedef int word;
typedef volatile unsigned char octet_t;
struct leaf {
	short h;
	unsigned char c;
	float f;
};
union both {
	uint32_t bits;
	float real;
	int8_t bytes[4];
};
struct node {
	signed char i8;
	unsigned char u8;
	short i16;
	unsigned short u16;
	int i32;
	unsigned u32;
	long i64;
	unsigned long u64;
	char ch;
	_Bool truth;
	float f;
	double d;
	enum color color;
	enum sign sign;
	unsigned b3 : 3, b17 : 17;
	int s5 : 5;
	_Bool b1 : 1;
	unsigned b31 : 31;
	int s32 : 32;
	unsigned b32 : 32;
	unsigned long b40 : 40;
	long s63 : 63;
	unsigned short b9 : 9;
	enum color bcolor : 31;
	struct leaf leaf;
	union both both;
	union {
		uint64_t whole;
		uint32_t half[2];
	};
	int arr[5];
	short grid[3][4];
	struct leaf leaves[3];
	word alias;
	octet_t octet;
	char name[8];
	struct node *next;
	int *ip;
	unsigned char *cp;
	double *dp;
	void *vp;
	struct leaf *lp;
	struct node **pp;
	const char *s;
};

enum { FENCE = 1 << 17, NODES = 3 };
/* Indices outside of the arrays hit the fences, which do not change during a round. */
static struct {
	char before[FENCE];
	struct node nodes[NODES];
	char behind[FENCE];
} memory;
static struct {
	char before[FENCE];
	int numbers[16];
	double reals[16];
	unsigned char bytes[64];
	char behind[FENCE];
} arrays;
static __thread int mine;
static signed char g_i8;
static unsigned short g_u16;
int g_i32;
static unsigned g_u32;
long g_i64;
static unsigned long g_u64;
static double g_d;
static float g_f;
static enum sign g_sign;
static const int g_const = -77;
static struct node g_node, *g_np;
static struct {
	const char *data;
	long len;
} g_text; /* a string that knows its length */
static struct node *table[4];
static const char *const texts[] = {"", "GET", "GET /1", "PUT", "a*b?", "longer than thirty-two characters, by a few of them"};

struct parameters {
	int pi;
	unsigned char pc;
	long pl;
	short ps;
	unsigned pu;
	struct node *pn;
	double pd;
	float pf;
	long stack_long;
	unsigned short stack_short;
	uint64_t gpr[16], xmm[16];
};
static struct parameters P;

/* ---- what C leaves open ------------------------------------------------------------------------------------------------- */

/* What changes during a round has fences of its own: an index outside of g_node's arrays must not reach it. */
static struct {
	char before[FENCE];
	uint64_t state;
	bool failed;
	char behind[FENCE];
} own;
static struct node nothing;

static inline void *fault(void)
{
	own.failed = true;
	return &nothing;
}

static bool can_read(const void *p, size_t n)
{
	char buf[sizeof(struct node)];
	const struct iovec local = {buf, n}, remote = {(void *)p, n};
	return n <= sizeof(buf) && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static inline int64_t to_integer(double d)
{
	return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : INT64_MIN;
}

/* Values above 2^63 are converted separately. */
static inline uint64_t to_unsigned(double d)
{
	return d >= 0x1p63 && d < 0x1p64 ? (uint64_t)d : d >= 0x1p64 ? 0 : (uint64_t)to_integer(d);
}

static inline int same_text(const char *p, const char *text)
{
	for (;; p++, text++) {
		if (!can_read(p, 1)) {
			own.failed = true;
			return false;
		}
		if (*p != *text)
			return false;
		if (!*p)
			return true;
	}
}

static inline int like(const char *p, const char *pattern)
{
	char copy[256] = "";
	if (!strcmp(pattern, "*")) /* always true, without reading */
		return true;
	for (size_t i = 0; i < sizeof(copy) - 1; i++) {
		if (!can_read(p + i, 1)) {
			own.failed = true;
			return false;
		}
		if (!(copy[i] = p[i]))
			break;
	}
	return !fnmatch(pattern, copy, FNM_NOESCAPE);
}

static inline int starts(const char *p, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!can_read(p + i, 1)) {
			own.failed = true;
			return false;
		}
		if (p[i] != text[i])
			return false;
	}
	return true;
}

/* str(p, n): n bytes, which may have no NUL behind them. */
static inline int glob_counted(const char *p, uint64_t n, const char *pattern)
{
	char copy[256] = "";
	for (size_t i = 0; i < n && i < sizeof(copy) - 1; i++) {
		if (!can_read(p + i, 1)) {
			own.failed = true;
			return false;
		}
		if (!(copy[i] = p[i]))
			break;
	}
	return !fnmatch(pattern, copy, FNM_NOESCAPE);
}

#define LENGTH(n)                                                                                                                \
	({                                                                                                                       \
		__auto_type n_ = +(n);                                                                                           \
		n_ < 0 ? 0 : (uint64_t)n_;                                                                                       \
	})
/* If the length decides, p is not computed. */
#define SAME_COUNTED(p, n, text)                                                                                                 \
	({                                                                                                                       \
		const uint64_t length_ = LENGTH(n);                                                                              \
		length_ == strlen(text) && (!*(text) || starts(p, text, length_));                                               \
	})
#define LIKE_COUNTED(p, n, pattern)                                                                                              \
	({                                                                                                                       \
		const size_t plain_ = strcspn(pattern, "*?");                                                                    \
		const uint64_t length_ = LENGTH(n);                                                                              \
		!(pattern)[plain_]                                                                                               \
		        ? length_ == plain_ && (!plain_ || starts(p, pattern, plain_))                                           \
		        : (pattern)[plain_] == '*' && !(pattern)[plain_ + 1]                                                     \
		                  ? length_ >= plain_ && starts(p, pattern, plain_)                                              \
		                  : glob_counted(p, length_, pattern);                                                           \
	})
#define AT(p)                                                                                                                    \
	(*({                                                                                                                     \
		__auto_type at_ = (p);                                                                                           \
		can_read((const void *)at_, sizeof(*at_)) ? at_ : (__typeof__(at_))fault();                                      \
	}))
#define DIVIDE(a, b)                                                                                                             \
	({                                                                                                                       \
		__auto_type a_ = (a);                                                                                            \
		__auto_type b_ = (b);                                                                                            \
		typedef __typeof__(a_ / b_) T_;                                                                                  \
		if (!b_)                                                                                                         \
			own.failed = true;                                                                                           \
		(T_) - 1 < (T_)0 && (T_)b_ == (T_)-1 ? (T_)(0 - (T_)a_) : (T_)((T_)a_ / (b_ ? (T_)b_ : (T_)1));                  \
	})
#define MODULO(a, b)                                                                                                             \
	({                                                                                                                       \
		__auto_type a_ = (a);                                                                                            \
		__auto_type b_ = (b);                                                                                            \
		typedef __typeof__(a_ / b_) T_;                                                                                  \
		if (!b_)                                                                                                         \
			own.failed = true;                                                                                           \
		(T_) - 1 < (T_)0 && (T_)b_ == (T_)-1 ? (T_)0 : (T_)((T_)a_ % (b_ ? (T_)b_ : (T_)1));                             \
	})
#define SHIFT(a, op, n)                                                                                                          \
	({                                                                                                                       \
		__auto_type a_ = +(a);                                                                                           \
		a_ op((int)(n) & (int)(sizeof(a_) * 8 - 1));                                                                     \
	})

/* ---- answers ------------------------------------------------------------------------------------------------------------ */

struct answer {
	uint64_t value; /* for a double: its bits */
	uint8_t size, is_signed, is_float, failed;
};
#define ANSWER(e)                                                                                                                \
	__auto_type v_ = +(e);                                                                                                   \
	*r = (struct answer)                                                                                                     \
	{                                                                                                                        \
		(uint64_t) v_, sizeof(v_), (__typeof__(v_))-1 < 0, 0, 0                                                          \
	}
#define ANSWER_REAL(e)                                                                                                           \
	__auto_type v_ = +(e);                                                                                                   \
	const double d_ = v_;                                                                                                    \
	*r = (struct answer){0, sizeof(v_), 1, 1, 0};                                                                            \
	memcpy(&r->value, &d_, sizeof(d_))
#define ANSWER_POINTER(e)                                                                                                        \
	*r = (struct answer)                                                                                                     \
	{                                                                                                                        \
		(uint64_t)(e), 8, 0, 0, 0                                                                                        \
	}

struct one_case {
	const char *text;
	void (*answer)(struct answer *r);
};

/* ---- values ------------------------------------------------------------------------------------------------------------- */

static uint64_t any(void)
{
	own.state ^= own.state << 13;
	own.state ^= own.state >> 7;
	own.state ^= own.state << 17;
	return own.state;
}

/* Mostly edge values, where results are most likely to differ. */
static uint64_t number(void)
{
	static const uint64_t edge[] = {0,
	                                1,
	                                2,
	                                -1ull,
	                                -2ull,
	                                0x7f,
	                                0x80,
	                                0xff,
	                                0x7fff,
	                                0x8000,
	                                0xffff,
	                                0x7fffffff,
	                                0x80000000,
	                                0xffffffff,
	                                0x100000000,
	                                INT64_MAX,
	                                1ull << 63,
	                                0x8000004000000001,
	                                0x20000010000001,
	                                0xffffff7fffffffff};
	const uint64_t r = any();
	switch (r % 4) {
	case 0:
		return edge[(r >> 8) % (sizeof(edge) / sizeof(*edge))];
	case 1:
		return (r >> 8) % 64 - 16;
	case 2:
		return any() & 0xffffffff;
	default:
		return any();
	}
}

static double real(void)
{
	static const double edge[] = {0,      -0.0,     1,     -1,  0.5,      1e10,    -1e10, 2147483648.0, 4294967296.0,
	                              0x1p63, 0x1.8p63, 1e300, 0.1, INFINITY, 16777217};
	const uint64_t r = any();
	return r % 3 == 0   ? edge[(r >> 8) % (sizeof(edge) / sizeof(*edge))]
	       : r % 3 == 1 ? (double)(int32_t)any() / 16
	                    : (double)(int64_t)number();
}

static void *pointer(void *good)
{
	const uint64_t r = any();
	return r % 16 == 0 ? NULL : r % 16 == 1 ? (void *)16 : r % 16 == 2 ? (void *)0xdead00000000beef : good;
}

static void fill(struct node *n)
{
	for (unsigned i = 0; i < 16; i++) {
		arrays.numbers[i] = (int)number();
		arrays.reals[i] = real();
		arrays.bytes[4 * i] = (unsigned char)number();
	}
	*n = (struct node){.i8 = number(),
	                   .u8 = number(),
	                   .i16 = number(),
	                   .u16 = number(),
	                   .i32 = number(),
	                   .u32 = number(),
	                   .i64 = number(),
	                   .u64 = number(),
	                   .ch = number(),
	                   .truth = any() & 1,
	                   .f = real(),
	                   .d = real(),
	                   .color = (enum color[]){RED, GREEN, BLUE}[any() % 3],
	                   .sign = (enum sign[]){MINUS, ZERO, PLUS}[any() % 3],
	                   .b3 = any(),
	                   .b17 = any(),
	                   .s5 = any(),
	                   .b1 = any() & 1,
	                   .b31 = any(),
	                   .s32 = number(),
	                   .b32 = number(),
	                   .b40 = any(),
	                   .s63 = any(),
	                   .b9 = any(),
	                   .bcolor = any() & 1 ? GREEN : RED,
	                   .alias = number()};
	n->leaf = (struct leaf){number(), number(), real()};
	n->both.bits = any() & 0x3fffffff;
	n->whole = number();
	for (unsigned i = 0; i < 5; i++)
		n->arr[i] = (int)number();
	for (unsigned i = 0; i < 12; i++)
		n->grid[i / 4][i % 4] = (short)number();
	for (unsigned i = 0; i < 3; i++)
		n->leaves[i] = (struct leaf){number(), number(), real()};
	strncpy(n->name, texts[any() % 4], sizeof(n->name) - 1);
	n->octet = (unsigned char)any();
	n->next = pointer(&memory.nodes[any() % NODES]);
	n->ip = pointer(&arrays.numbers[4]);
	n->cp = pointer(&arrays.bytes[8]);
	n->dp = pointer(&arrays.reals[4]);
	n->vp = pointer(&arrays.numbers[8]);
	n->lp = pointer(&n->leaves[1]);
	n->pp = pointer(&table[any() & 1]);
	n->s = pointer((char *)texts[any() % 6]);
}

void world_randomize(uint64_t seed);
void world_randomize(uint64_t seed)
{
	own.state = seed * 0x9e3779b97f4a7c15 + 88172645463325252u;
	any();
	/* The fences may be read as a _Bool, too; C defines only the values 0 and 1. */
	for (size_t i = 0; i < FENCE; i += 8) {
		memcpy(memory.before + i, &(uint64_t){any() & 0x0101010101010101}, 8);
		memcpy(memory.behind + i, &(uint64_t){any() & 0x0101010101010101}, 8);
	}
	for (unsigned i = 0; i < NODES; i++)
		fill(&memory.nodes[i]);
	fill(&g_node);
	for (unsigned i = 0; i < 4; i++)
		table[i] = pointer(&memory.nodes[any() % NODES]);
	g_np = pointer(&memory.nodes[any() % NODES]);
	mine = (int)number();
	g_i8 = (signed char)number();
	g_u16 = (unsigned short)number();
	g_i32 = (int)number();
	g_u32 = (unsigned)number();
	g_i64 = (long)number();
	g_u64 = number();
	g_d = real();
	g_f = (float)real();
	g_sign = (enum sign[]){MINUS, ZERO, PLUS}[any() % 3];
	g_text.data = texts[any() % (sizeof(texts) / sizeof(*texts))];
	g_text.len = any() % 8 ? (long)strlen(g_text.data) : number();
	P = (struct parameters){.pi = number(),
	                        .pc = number(),
	                        .pl = number(),
	                        .ps = number(),
	                        .pu = number(),
	                        .pn = pointer(&memory.nodes[any() % NODES]),
	                        .pd = real(),
	                        .pf = real(),
	                        .stack_long = number(),
	                        .stack_short = number()};
}

struct parameters *world_parameters(void);
struct parameters *world_parameters(void)
{
	return &P;
}

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif
long site(int pi, unsigned char pc, long pl, short ps, unsigned pu, struct node *pn, double pd, float pf, long stack_long,
          unsigned short stack_short);
ALONE long site(int pi, unsigned char pc, long pl, short ps, unsigned pu, struct node *pn, double pd, float pf, long stack_long,
                unsigned short stack_short)
{
	mine += 0;
	return pi + pc + pl + ps + pu + (long)pn + stack_long + stack_short + (pd < 0) + (pf < 0) + g_const + g_i8 + g_u16;
}

extern const struct one_case cases[];
extern const unsigned ncases;
const struct one_case *world_case(unsigned i);
const struct one_case *world_case(unsigned i)
{
	return i < ncases ? &cases[i] : NULL;
}

void world_answer(unsigned i, struct answer *r);
void world_answer(unsigned i, struct answer *r)
{
	own.failed = false;
	cases[i].answer(r);
	r->failed = own.failed;
}
