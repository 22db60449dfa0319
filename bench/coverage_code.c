/* SPDX-License-Identifier: MIT */
/*
 * Which bytes of a module are instructions: functions by symbols and by .eh_frame, decoded from their start to their end. In a
 * module that names less than half of its text (Go programs without symbols), the gaps between them are decoded in the same way.
 */
#include "coverage.h"

#include "probes/image/module.h"

#include <stdlib.h>
#include <string.h>

struct range {
	uint64_t start, end; /* in the target */
	bool swept;
};

struct ranges {
	struct range *range;
	size_t n, cap;
	bool failed;
};

static void add(struct ranges *r, struct range range)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 1024;
		struct range *grown = realloc(r->range, cap * sizeof(*grown));
		if (!grown) {
			r->failed = true;
			return;
		}
		r->range = grown;
		r->cap = cap;
	}
	if (range.start < range.end)
		r->range[r->n++] = range;
}

static void add_symbols(struct ranges *r, const struct dp_module *m, const struct dp_symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++) {
		const struct dp_symbol *s = &symbols->symbol[i];
		uint64_t start = s->value + (uint64_t)m->bias;
		if (s->code && s->size && (s->type == STT_FUNC || s->type == STT_GNU_IFUNC))
			add(r, (struct range){start, start + s->size, false});
	}
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end; /* the longest first */
}

/* .text, or all executable bytes. */
static struct range text_section(const struct code *code)
{
	GElf_Shdr shdr;
	struct dp_span span;
	if (code->module->elf && dp_elf_section(code->module->elf, ".text", 0, &shdr, &span))
		return (struct range){span.vaddr + (uint64_t)code->module->bias,
		                      span.vaddr + span.size + (uint64_t)code->module->bias, true};
	return (struct range){code->lo, code->hi, true};
}

static void add_gaps(struct ranges *r, const struct code *code)
{
	struct range text = text_section(code);
	uint64_t covered = 0, at = text.start;
	const size_t named = r->n;
	for (size_t i = 0; i < named; i++) {
		uint64_t from = r->range[i].start > at ? r->range[i].start : at;
		if (r->range[i].end <= from)
			continue;
		covered += r->range[i].end - from;
		at = r->range[i].end;
	}
	if (2 * covered >= text.end - text.start)
		return;
	at = text.start;
	for (size_t i = 0; i < named; i++) {
		if (r->range[i].start > at)
			add(r, (struct range){at, r->range[i].start, true});
		if (r->range[i].end > at)
			at = r->range[i].end;
	}
	add(r, (struct range){at, text.end, true});
	qsort(r->range, r->n, sizeof(*r->range), compare);
}

static struct dp_error *find_ranges(const struct code *code, struct ranges *r)
{
	const struct dp_fdes *fdes = dp_module_fdes(code->module);
	for (size_t i = 0; i < fdes->n; i++) {
		uint64_t start = fdes->fde[i].start + (uint64_t)code->module->bias;
		add(r, (struct range){start, start + fdes->fde[i].size, false});
	}
	add_symbols(r, code->module, dp_module_own_symbols(code->module));
	add_symbols(r, code->module, dp_module_debug_symbols(code->module));
	if (r->n)
		qsort(r->range, r->n, sizeof(*r->range), compare);
	add_gaps(r, code);
	return r->failed ? dp_error_nomem() : NULL;
}

/* ---- decoding ----------------------------------------------------------------------------------------------------------- */

/* False for bytes that are not an instruction, or where another range's decoding disagrees. */
static bool mark_one(struct code *code, uint64_t at, uint64_t end, struct dp_insn *insn)
{
	if (!dp_decode_zydis(code->old + (at - code->lo), end - at, at, insn))
		return false;
	for (uint64_t k = at + 1; k < at + insn->len; k++)
		if (*code_mark(code, k) & MARK_START)
			return false;
	*code_mark(code, at) |= MARK_START;
	if ((insn->flow == DP_FLOW_JMP || insn->flow == DP_FLOW_JCC || insn->flow == DP_FLOW_JCXZ ||
	     insn->flow == DP_FLOW_CALL) &&
	    code_holds(code, insn->target))
		*code_mark(code, insn->target) |= MARK_TARGET;
	return true;
}

static void mark_range(struct code *code, const struct range *range)
{
	struct dp_insn insn;
	for (uint64_t at = range->start; at < range->end; at += insn.len) {
		if (*code_mark(code, at) & MARK_START) { /* decoded before */
			if (!dp_decode_zydis(code->old + (at - code->lo), range->end - at, at, &insn))
				return;
		} else if (!mark_one(code, at, range->end, &insn)) {
			code->nundecodable += range->end - at;
			return;
		}
	}
}

/* Code between functions belongs to no range. After code that does not continue it is padding as well. */
static void pad(struct code *code, uint64_t at)
{
	struct dp_insn insn;
	for (; at < code->hi && !(*code_mark(code, at) & (MARK_START | MARK_TARGET)); at += insn.len) {
		if (!dp_decode_zydis(code->old + (at - code->lo), code->hi - at, at, &insn) || !dp_insn_is_padding(&insn))
			return;
		for (uint64_t k = at + 1; k < at + insn.len && k < code->hi; k++)
			if (*code_mark(code, k) & MARK_START)
				return;
		*code_mark(code, at) |= MARK_START | MARK_PADDING;
		code->npadding++;
	}
}

static struct dp_error *add_site(struct code *code, uint64_t addr, const struct dp_text *text)
{
	if (code->nsites == code->cap) {
		size_t cap = code->cap ? 2 * code->cap : 4096;
		struct site *grown = realloc(code->site, cap * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		code->site = grown;
		code->cap = cap;
	}
	code->site[code->nsites++] = (struct site){addr, text};
	return NULL;
}

/* The branch targets are known now: nops after an instruction that does not continue are padding if no branch leads to them. */
static struct dp_error *take_sites(struct code *code, const struct range *range, const struct dp_text *text)
{
	struct dp_insn insn;
	bool reached = true;
	uint64_t at = range->start;
	for (; at < range->end && *code_mark(code, at) & MARK_START; at += insn.len) {
		uint8_t *mark = code_mark(code, at);
		if (!dp_decode_zydis(code->old + (at - code->lo), range->end - at, at, &insn))
			return NULL;
		reached = reached || *mark & MARK_TARGET;
		bool known = *mark & (MARK_SITE | MARK_PADDING), endbr = dp_text_endbr(text, at) == insn.len;
		if (!reached && dp_insn_is_padding(&insn)) {
			code->npadding += !known;
			*mark |= MARK_PADDING;
			continue;
		}
		reached = dp_insn_continues(&insn);
		if (endbr && !known)
			code->nendbr++;
		else if (!known)
			DP_TRY(add_site(code, at, text));
		*mark |= endbr ? MARK_PADDING : MARK_SITE;
	}
	if (!reached && at >= range->end)
		pad(code, at);
	return NULL;
}

static struct dp_error *decode(struct code *code, const struct ranges *r)
{
	code->text = calloc(r->n + 1, sizeof(*code->text));
	if (!code->text)
		return dp_error_nomem();
	for (size_t i = 0; i < r->n; i++)
		if (code_holds(code, r->range[i].start) && r->range[i].end <= code->hi)
			mark_range(code, &r->range[i]);
	for (size_t i = 0; i < r->n; i++) {
		struct dp_function f;
		struct dp_text *text = &code->text[i];
		if (!code_holds(code, r->range[i].start) || r->range[i].end > code->hi)
			continue;
		*text = code->base;
		if (dp_image_function_at(code->image, dp_addr_of(r->range[i].start), &f)) {
			text->function = f.start.v;
			text->size = f.size;
		}
		code->nswept += r->range[i].swept;
		code->nranges += !r->range[i].swept;
		DP_TRY(take_sites(code, &r->range[i], text));
	}
	return NULL;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------------ */

static struct dp_error *load_segments(struct code *code)
{
	const size_t n = dp_module_nsegments(code->module);
	code->segment = calloc(n + 1, sizeof(*code->segment));
	if (!code->segment)
		return dp_error_nomem();
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		dp_addr addr;
		struct dp_segment *s = &code->segment[used];
		if (!dp_module_segment(code->module, i, &addr, &s->bytes, &s->n, &s->exec))
			continue;
		s->addr = addr.v;
		used++;
		if (!s->exec)
			continue;
		code->lo = code->lo && code->lo < s->addr ? code->lo : s->addr;
		code->hi = code->hi > s->addr + s->n ? code->hi : s->addr + s->n;
	}
	code->base = (struct dp_text){.segment = code->segment, .nsegments = used, .bias = dp_module_bias(code->module)};
	code->base.pads_known = dp_module_landing_pads(code->module, &code->base.pads, &code->base.npads);
	return code->lo < code->hi ? NULL : dp_error(DP_TAG_NOT_CODE, "%s holds no code", dp_module_path(code->module));
}

static struct dp_error *copy_bytes(struct code *code)
{
	const size_t n = code->hi - code->lo;
	code->mark = calloc(n, 1);
	code->old = calloc(n, 1);
	code->now = calloc(n, 1);
	if (!code->mark || !code->old || !code->now)
		return dp_error_nomem();
	for (size_t i = 0; i < code->base.nsegments; i++)
		if (code->segment[i].exec)
			memcpy(code->old + (code->segment[i].addr - code->lo), code->segment[i].bytes, code->segment[i].n);
	memcpy(code->now, code->old, n);
	return NULL;
}

struct dp_error *code_load(struct dp_image *image, struct dp_module *module, struct code *ret)
{
	struct ranges ranges = {0};
	*ret = (struct code){.image = image, .module = module};
	DP_TRY(load_segments(ret));
	DP_TRY(dp_analysis_create(&ret->base.known));
	DP_TRY(copy_bytes(ret));
	struct dp_error *err = find_ranges(ret, &ranges);
	if (!err)
		err = decode(ret, &ranges);
	free(ranges.range);
	return err;
}

void code_fini(struct code *code)
{
	dp_analysis_destroy(code->base.known);
	free(code->segment);
	free(code->mark);
	free(code->old);
	free(code->now);
	free(code->text);
	free(code->site);
}
