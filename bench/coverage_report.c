/* SPDX-License-Identifier: MIT */
/* Counters and reports of bench/coverage. */
#include "coverage.h"

#include <stdlib.h>
#include <string.h>

void tally_placed(struct tally *t, enum dp_tactic tactic)
{
	t->asked++;
	t->placed[tactic]++;
}

/* The examples of one reason should be different instructions, by their mnemonic. */
static bool is_new(const struct tally *t, enum dp_tag tag, const char *text)
{
	const char *word = strchr(text, ' ');
	for (size_t i = 0; word && i < t->nexamples[tag]; i++) {
		const char *other = strchr(t->example[tag][i].text, ' ');
		size_t n = strcspn(word + 1, " ");
		if (other && !strncmp(other, word, n + 1) && strcspn(other + 1, " ") == n)
			return false;
	}
	return true;
}

void tally_refused(struct tally *t, const struct code *code, const struct site *site, struct dp_error *err)
{
	const enum dp_tag tag = err->tag;
	struct dp_insn insn;
	struct example e = {.addr = site->addr};
	t->asked++;
	t->refused[tag]++;
	const uint8_t *bytes = code->old + (site->addr - code->lo);
	if (dp_decode_zydis(bytes, code->hi - site->addr, site->addr, &insn))
		dp_insn_text(&insn, e.text);
	if (t->nexamples[tag] < EXAMPLES && is_new(t, tag, e.text)) {
		for (size_t i = 0, at = 0; i < 8 && site->addr + i < code->hi; i++)
			at += (size_t)sprintf(e.bytes + at, "%s%02x", i ? " " : "", bytes[i]);
		e.message = strdup(err->cause ? err->cause->message : err->message);
		t->example[tag][t->nexamples[tag]++] = e;
	}
	dp_error_destroy(err);
}

void tally_fini(struct tally *t)
{
	for (int tag = 0; tag < DP_TAG_COUNT; tag++)
		for (size_t i = 0; i < t->nexamples[tag]; i++)
			free(t->example[tag][i].message);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Pages of text in which plans change bytes: the kernel would copy them for the process. */
static size_t text_pages(const struct layout *layout)
{
	uint64_t *page = calloc(2 * layout->nplans + 1, sizeof(*page));
	size_t n = 0, distinct = 0;
	for (size_t i = 0; page && i < layout->nplans; i++) {
		page[n++] = layout->plan[i].site / 4096;
		page[n++] = (layout->plan[i].site + layout->plan[i].changed - 1) / 4096;
	}
	if (n)
		qsort(page, n, sizeof(*page), by_value);
	for (size_t i = 0; i < n; i++)
		distinct += !i || page[i] != page[i - 1];
	free(page);
	return distinct;
}

static void raise_to(size_t *most, size_t value)
{
	*most = *most > value ? *most : value;
}

void tally_layout(struct tally *t, const struct layout *layout)
{
	size_t bytes = 0, pages = text_pages(layout);
	for (size_t i = 0; i < layout->nextents; i++)
		bytes += layout->extent[i].n;
	t->rounds++;
	t->plans += layout->nplans;
	t->extents += layout->nextents;
	t->own_bytes += bytes;
	t->text_pages += pages;
	raise_to(&t->most_extents, layout->nextents);
	raise_to(&t->most_bytes, bytes);
	raise_to(&t->most_pages, pages);
}

/* ---- text and JSON ---------------------------------------------------------------------------------------------------- */

static double percent(size_t n, size_t of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

static void put_json(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
	putchar('"');
}

void report_code(const struct code *code, bool json)
{
	const char *name = dp_module_name(code->module);
	if (json) {
		printf("{\"kind\": \"module\", \"name\": ");
		put_json(name);
		printf(", \"address\": \"0x%llx\", \"sites\": %zu, \"functions\": %zu, \"swept\": %zu, \"endbr\": %zu, "
		       "\"padding\": %zu, "
		       "\"undecodable_bytes\": %zu}\n",
		       (unsigned long long)code->lo, code->nsites, code->nranges, code->nswept, code->nendbr, code->npadding,
		       code->nundecodable);
		return;
	}
	printf("%s at 0x%llx: %zu instructions in %zu functions and %zu gaps; besides %zu endbr64, %zu of padding, %zu bytes "
	       "undecodable\n",
	       name, (unsigned long long)code->lo, code->nsites, code->nranges, code->nswept, code->nendbr, code->npadding,
	       code->nundecodable);
}

static void json_tally(const struct tally *t)
{
	printf("{\"kind\": \"mode\", \"mode\": \"%s\", \"asked\": %zu", t->mode, t->asked);
	for (int k = 0; k < DP_TACTIC_COUNT; k++)
		printf(", \"%s\": %zu", dp_tactic_name((enum dp_tactic)k), t->placed[k]);
	printf(", \"refused\": {");
	for (int tag = 0, n = 0; tag < DP_TAG_COUNT; tag++)
		if (t->refused[tag])
			printf("%s\"%s\": %zu", n++ ? ", " : "", dp_tag_name((enum dp_tag)tag), t->refused[tag]);
	printf("}, \"us_per_site\": %.3f, \"rounds\": %zu, \"plans\": %zu, \"extents\": %zu, \"own_bytes\": %zu, \"text_pages\": "
	       "%zu, "
	       "\"violations\": %zu, \"examples\": [",
	       t->asked ? 1e6 * t->seconds / (double)t->asked : 0, t->rounds, t->plans, t->most_extents, t->most_bytes,
	       t->most_pages, t->violations);
	for (int tag = 0, n = 0; tag < DP_TAG_COUNT; tag++)
		for (size_t i = 0; i < t->nexamples[tag]; i++) {
			const struct example *e = &t->example[tag][i];
			printf("%s{\"tag\": \"%s\", \"bytes\": \"%s\", \"text\": ", n++ ? ", " : "",
			       dp_tag_name((enum dp_tag)tag), e->bytes);
			put_json(e->text);
			printf(", \"message\": ");
			put_json(e->message);
			printf("}");
		}
	printf("]}\n");
}

static void text_refusals(const struct tally *t, const struct code *code)
{
	for (int tag = 0; tag < DP_TAG_COUNT; tag++) {
		if (t->refused[tag])
			printf("  %-18s %9zu  %8.4f %%\n", dp_tag_name((enum dp_tag)tag), t->refused[tag],
			       percent(t->refused[tag], t->asked));
		for (size_t i = 0; i < t->nexamples[tag]; i++) {
			const struct example *e = &t->example[tag][i];
			char where[200];
			dp_image_describe(code->image, dp_addr_of(e->addr), where, sizeof(where));
			printf("      %s | %s | %s\n        %s\n", e->bytes, e->text, where, e->message);
		}
	}
}

void report_tally(const struct tally *t, const struct code *code, bool json)
{
	size_t placed = 0;
	if (json) {
		json_tally(t);
		return;
	}
	printf("%s: %zu asked\n", t->mode, t->asked);
	for (int k = 0; k < DP_TACTIC_COUNT; k++) {
		placed += t->placed[k];
		printf("  %-18s %9zu  %8.4f %%  together %8.4f %%\n", dp_tactic_name((enum dp_tactic)k), t->placed[k],
		       percent(t->placed[k], t->asked), percent(placed, t->asked));
	}
	text_refusals(t, code);
	printf("  %.2f us a site; per round at most %zu mappings, %zu KiB of own memory, %zu pages of text; %zu plans in %zu "
	       "rounds; "
	       "%zu violations\n",
	       t->asked ? 1e6 * t->seconds / (double)t->asked : 0, t->most_extents, t->most_bytes / 1024, t->most_pages, t->plans,
	       t->rounds, t->violations);
}
