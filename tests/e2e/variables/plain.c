/* SPDX-License-Identifier: MIT */
#include "values.h"

enum color { RED, GREEN = 5, BLUE, DARK = -3 };
struct header {
	short type;
	char tag[8];
};
union either {
	uint32_t bits;
	float real;
};
struct request {
	int len;
	const char *name;
	struct header hdr;
	unsigned flag : 3, wide : 17;
	int below : 5;
	double weight;
	float ratio;
	struct request *next;
	enum color color;
	_Bool ok;
	uint8_t raw[4];
	union {
		uint64_t id;
		uint32_t half[2];
	};
	union either either;
	int table[3];
};
struct pair {
	int32_t a;
	float b;
};
struct mixed {
	int64_t n;
	double d;
};

static int counter;
int64_t global;
static __thread int mine = 100;
static struct request ring[2];
void (*volatile hook)(int);

/* gcc would make a copy with another calling convention. */
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif
#define HIDE(x) __asm__ volatile("" : "+r"(x))

ALONE int64_t work(struct request *req, int n, unsigned char small, int64_t big, double d, float f, struct pair pair,
                                       struct mixed mixed, int seventh, short eighth, enum color color)
{
	counter++;
	mine += 3;
	int64_t sum = req->len + n + small + big + (int64_t)d + (int64_t)f + pair.a + mixed.n + seventh + eighth + (int)color;
	global = sum;
	HIDE(sum);
	return sum;
}

ALONE double half_of(double x)
{
	double y = x / 2;
	__asm__ volatile("" : "+x"(y));
	return y;
}

/* Keeps padding after half_of()'s ret: at the end of the text a jump would fit at few load addresses only. */
void behind_half_of(void);
ALONE __attribute__((used)) void behind_half_of(void)
{
	global++;
}

static void fill(struct request *r, int i)
{
	static char names[2][32];
	snprintf(names[i & 1], sizeof(names[0]), i % 3 ? "GET /%d" : "PUT /%d", i);
	r->name = names[i & 1];
	r->len = (int)any();
	r->hdr.type = (short)any();
	snprintf(r->hdr.tag, sizeof(r->hdr.tag), "t%d", i % 100000);
	r->flag = (unsigned)any();
	r->wide = (unsigned)any();
	r->below = (int)any();
	r->weight = (double)(int32_t)any() / 16;
	r->ratio = (float)(int16_t)any() / 4;
	r->next = &ring[!(i & 1)];
	r->color = (enum color[]){RED, GREEN, BLUE, DARK}[any() % 4];
	r->ok = any() & 1;
	r->id = any();
	r->either.bits = (uint32_t)any() & 0x3fffffff;
	for (int k = 0; k < 4; k++)
		r->raw[k] = (uint8_t)any();
	for (int k = 0; k < 3; k++)
		r->table[k] = (int)any();
}

static const char *name_of(enum color c)
{
	return c == RED ? "RED" : c == GREEN ? "GREEN" : c == BLUE ? "BLUE" : "DARK";
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (argc > 2)
		fputs("READY\n", stderr);
	for (int i = 0; i < rounds; i++) {
		struct request *r = &ring[i & 1];
		fill(r, i);
		const int n = (int)any(), seventh = (int)any();
		const short eighth = (short)any();
		const unsigned char small = (unsigned char)any();
		const int64_t big = (int64_t)any();
		const double d = (double)(int32_t)any() / 8;
		const float f = (float)(int16_t)any() / 2;
		const struct pair pair = {(int32_t)any(), (float)(int8_t)any()};
		const struct mixed mixed = {(int64_t)any(), (double)(int16_t)any()};
		printf("{\"n\":%d,\"small\":%u,\"big\":%" PRId64 ",\"d\":%.17g,\"f\":%.9g,\"pair_a\":%d,\"pair_b\":%.9g,\"mixed_n\":%" PRId64
		       ",\"mixed_d\":%.17g,\"seventh\":%d,\"eighth\":%d,\"color\":\"%s\",",
		       n, small, big, d, (double)f, pair.a, (double)pair.b, mixed.n, mixed.d, seventh, eighth, name_of(r->color));
		printf("\"req_len\":%d,\"req_name\":\"%s\",\"req_hdr_type\":%d,\"req_hdr_tag\":\"%s\",\"req_flag\":%u,\"req_wide\":%u,\"req_below\":%d,"
		       "\"req_weight\":%.17g,\"req_ratio\":%.9g,\"req_color\":\"%s\",\"req_ok\":%s,\"req_raw\":\"%02x%02x%02x%02x\",\"req_id\":%" PRIu64 ",",
		       r->len, r->name, r->hdr.type, r->hdr.tag, r->flag, r->wide, r->below, r->weight, (double)r->ratio, name_of(r->color),
		       r->ok ? "true" : "false", r->raw[0], r->raw[1], r->raw[2], r->raw[3], r->id);
		printf("\"next_len\":%d,\"counter\":%d,\"mine\":%d,\"global\":%" PRId64 ",\"second\":%d,\"half_1\":%u,\"real\":%.9g,", r->next->len,
		       counter, mine, global, r->table[1], r->half[1], (double)r->either.real);
		/* The values that C computes. */
		printf("\"e_sum\":%d,\"e_unsigned\":%d,\"e_shift\":%d,\"e_divide\":%" PRId64 ",\"e_modulo\":%d,\"e_narrow\":%d,\"e_float\":%d,\"e_mixed\":%.17g,"
		       "\"e_bits\":%d,\"e_choice\":%d,\"e_logic\":%d,\"e_pointer\":%td,\"e_xor\":%" PRId64 ",\"e_wrap\":%u,",
		       (int)((unsigned)n + (unsigned)seventh), r->flag - 9u > 5u, n >> (small & 7), big / (n | 1), seventh % (n | 1), (signed char)n,
		       f < (float)d, n * 0.5 + f, r->below * 2 + (int)r->wide, small > 100 ? n : eighth, n > 0 && r->color != RED, &r->table[2] - r->table,
		       big ^ n, (unsigned)n * 3u);
		const int64_t result = work(r, n, small, big, d, f, pair, mixed, seventh, eighth, r->color);
		printf("\"retval\":%" PRId64 ",\"half\":%.17g}\n", result, half_of(d));
		breathe(i);
	}
	return 0;
}
