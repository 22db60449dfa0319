/* SPDX-License-Identifier: MIT */
/*
 * Chooses instructions. An address is drawn from the executable segments and its function is decoded from the start, so that each
 * byte of code has the same chance. Most of a library never runs, so half of a batch is drawn from functions that ran in earlier
 * rounds. Some choices are runs of neighbouring instructions.
 */
#include "tests/torture/torture.h"

#include "base/cleanup.h"
#include "trampoline/arch/x86_64/decode/decode.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_MAX 4096u
#define RUN_MAX   24u
#define HOT_MAX   4096u
#define NAME_MAX_ 128

struct hot {
	struct {
		char module[NAME_MAX_];
		uint64_t function;
	} one[HOT_MAX];
	size_t n;
};

struct choice {
	struct dp_image *image;
	const struct options *o;
	const struct hot *hot;
	uint64_t random;
	struct batch *batch;
	size_t room;
};

/* splitmix64 */
uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct hot *hot_create(void)
{
	return calloc(1, sizeof(struct hot));
}

struct hot *hot_destroy(struct hot *hot)
{
	free(hot);
	return NULL;
}

static void add_function(struct hot *hot, const char *module, uint64_t function)
{
	for (size_t i = 0; i < hot->n; i++)
		if (hot->one[i].function == function && !strcmp(hot->one[i].module, module))
			return;
	if (hot->n == HOT_MAX || strlen(module) >= NAME_MAX_)
		return;
	strcpy(hot->one[hot->n].module, module);
	hot->one[hot->n++].function = function;
}

/* Its callees are likely to run too. */
static void add_callees(struct hot *hot, const struct dp_function *f)
{
	const uint64_t bias = (uint64_t)dp_module_bias(f->module);
	size_t size = f->size;
	dp_auto_free uint8_t *bytes = malloc(size + 1);
	if (!bytes || failed(dp_module_text(f->module, f->start, bytes, &size)))
		return;
	struct dp_insn insn;
	for (size_t at = 0; at < size && dp_decode_zydis(bytes + at, size - at, f->start.v + at, &insn); at += insn.len)
		if (insn.flow == DP_FLOW_CALL)
			add_function(hot, dp_module_name(f->module), insn.target - bias);
}

void hot_add(struct hot *hot, const struct place *place)
{
	const size_t before = hot->n;
	add_function(hot, dp_module_name(place->site.module), place->file_function);
	if (hot->n > before)
		add_callees(hot, &place->site.function);
}

static bool taken(const struct batch *b, uint64_t addr)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->place[i].site.addr.v == addr)
			return true;
	return false;
}

static void take(struct choice *c, const struct dp_site *site, uint64_t addr)
{
	struct batch *b = c->batch;
	if (b->n == c->room || taken(b, addr))
		return;
	struct place *p = &b->place[b->n++];
	const uint64_t bias = (uint64_t)dp_module_bias(site->module);
	p->site = *site;
	p->site.addr = dp_addr_of(addr);
	p->file_addr = addr - bias;
	p->file_function = site->function.start.v - bias;
}

/* Starts of the function's instructions, up to the first that cannot be decoded. */
static size_t starts_of(const struct dp_function *f, uint64_t start[static INSNS_MAX])
{
	size_t n = 0, size = f->size;
	dp_auto_free uint8_t *bytes = malloc(size + 1);
	if (!bytes || !size || failed(dp_module_text(f->module, f->start, bytes, &size)))
		return 0;
	for (size_t at = 0; at < size && n < INSNS_MAX;) {
		struct dp_insn insn;
		if (!dp_decode_zydis(bytes + at, size - at, f->start.v + at, &insn))
			break;
		start[n++] = f->start.v + at;
		at += insn.len;
	}
	return n;
}

static void take_from(struct choice *c, const struct dp_site *site)
{
	uint64_t start[INSNS_MAX];
	const size_t n = starts_of(&site->function, start);
	if (!n)
		return;
	const uint64_t r = random_next(&c->random);
	const size_t first = r % 3 ? (r >> 8) % n : 0; /* a hit at the entry shows soonest that the function runs */
	const size_t run = r >> 2 & 1 ? 1 + (r >> 40) % RUN_MAX : 1;
	for (size_t i = first; i < n && i < first + run; i++)
		take(c, site, start[i]);
}

static bool wanted(const struct options *o, const struct dp_module *m)
{
	return dp_module_path(m)[0] == '/' && !fnmatch(o->module, dp_module_name(m), 0);
}

/* The address of the n-th byte of all wanted code, or of `only`'s; if there are fewer bytes, returns their number. */
static uint64_t nth_byte(struct choice *c, struct dp_module *only, uint64_t n, struct dp_module **ret)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < dp_image_nmodules(c->image); i++) {
		struct dp_module *m = dp_image_module(c->image, i);
		for (size_t s = 0; (!only || only == m) && wanted(c->o, m) && s < dp_module_nsegments(m); s++) {
			const uint8_t *bytes;
			dp_addr addr;
			size_t size;
			bool exec;
			if (!dp_module_segment(m, s, &addr, &bytes, &size, &exec) || !exec)
				continue;
			if (n - sum < size) {
				*ret = m;
				return addr.v + (n - sum);
			}
			sum += size;
		}
	}
	*ret = NULL;
	return sum;
}

/* Weighs modules by size, or all equally: the program itself may be small. */
static uint64_t draw_address(struct choice *c, struct dp_module **ret)
{
	const uint64_t r = random_next(&c->random);
	struct dp_module *only = r & 1 ? dp_image_module(c->image, (r >> 8) % dp_image_nmodules(c->image)) : NULL;
	const uint64_t sum = nth_byte(c, only, UINT64_MAX, ret);
	return sum ? nth_byte(c, only, random_next(&c->random) % sum, ret) : 0;
}

static bool draw_anywhere(struct choice *c, struct dp_site *ret)
{
	ret->addr = dp_addr_of(draw_address(c, &ret->module));
	return ret->module && dp_image_function_at(c->image, ret->addr, &ret->function) && ret->function.size;
}

static struct dp_module *module_named(struct dp_image *image, const char *name)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (!strcmp(dp_module_name(dp_image_module(image, i)), name))
			return dp_image_module(image, i);
	return NULL;
}

static bool draw_hot(struct choice *c, struct dp_site *ret)
{
	if (!c->hot->n)
		return false;
	const size_t i = random_next(&c->random) % c->hot->n;
	ret->module = module_named(c->image, c->hot->one[i].module);
	if (!ret->module || !wanted(c->o, ret->module))
		return false;
	ret->addr = dp_addr_of(c->hot->one[i].function + (uint64_t)dp_module_bias(ret->module));
	return dp_image_function_at(c->image, ret->addr, &ret->function) && ret->function.size;
}

struct dp_error *batch_choose(struct dp_image *image, const struct options *o, const struct hot *hot, uint64_t seed,
                              struct batch *ret)
{
	struct choice c = {.image = image, .o = o, .hot = hot, .random = seed, .batch = ret, .room = o->batch};
	*ret = (struct batch){.place = calloc(o->batch, sizeof(*ret->place))};
	if (!ret->place)
		return dp_error_nomem();
	for (size_t tried = 0; ret->n < o->batch && tried < 8 * o->batch; tried++) {
		struct dp_site site = {0};
		const bool hot_one = random_next(&c.random) & 1;
		if (hot_one ? draw_hot(&c, &site) : draw_anywhere(&c, &site))
			take_from(&c, &site);
	}
	return ret->n ? NULL : dp_error(DP_TAG_NO_MODULE, "no function with code in a module that matches %s", o->module);
}

/* ---- batches in files: "MODULE FILE-ADDRESS FUNCTION" a line ---- */

struct dp_error *batch_save(const struct batch *b, const char *path, uint64_t seed)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return dp_error_sys(DP_TAG_OUTPUT, "%s", path);
	fprintf(f, "# seed %llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < b->n; i++)
		fprintf(f, "%s 0x%llx %s\n", dp_module_name(b->place[i].site.module), (unsigned long long)b->place[i].file_addr,
		        b->place[i].site.function.name[0] ? b->place[i].site.function.name : "?");
	return fclose(f) ? dp_error_sys(DP_TAG_OUTPUT, "%s", path) : NULL;
}

static void load_line(struct choice *c, const char *line, size_t *number)
{
	char name[NAME_MAX_];
	unsigned long long addr;
	struct dp_site site = {0};
	if (sscanf(line, "%127s %llx", name, &addr) != 2 || name[0] == '#')
		return;
	const size_t i = (*number)++;
	site.module = module_named(c->image, name);
	if (!site.module || i < c->o->first || i > c->o->last)
		return;
	site.addr = dp_addr_of(addr + (uint64_t)dp_module_bias(site.module));
	dp_image_function_at(c->image, site.addr, &site.function);
	take(c, &site, site.addr.v);
}

struct dp_error *batch_load(struct dp_image *image, const struct options *o, struct batch *ret)
{
	enum { MOST = 20000 };
	struct choice c = {.image = image, .o = o, .batch = ret, .room = MOST};
	char line[512];
	size_t number = 0;
	*ret = (struct batch){.place = calloc(MOST, sizeof(*ret->place))};
	FILE *f = fopen(o->replay, "re");
	if (!f)
		return dp_error_sys(DP_TAG_USAGE, "%s", o->replay);
	while (ret->place && fgets(line, sizeof(line), f))
		load_line(&c, line, &number);
	fclose(f);
	return NULL;
}

void batch_fini(struct batch *b)
{
	free(b->place);
	*b = (struct batch){0};
}
