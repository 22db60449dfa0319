/* SPDX-License-Identifier: MIT */
#include "tests/torture/torture.h"

static void add(size_t *sum, const size_t *one, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += one[i];
}

void tally_add(struct tally *sum, const struct tally *one)
{
	sum->rounds += one->rounds;
	sum->asked += one->asked;
	sum->planned += one->planned;
	add(sum->placed, one->placed, DP_TACTIC_COUNT);
	add(sum->refused, one->refused, DP_TAG_COUNT);
	add(sum->no_install, one->no_install, DP_TAG_COUNT);
	add(sum->no_open, one->no_open, DP_TAG_COUNT);
	sum->hits += one->hits;
	sum->sites_hit += one->sites_hit;
	sum->lost += one->lost;
	sum->left_bytes += one->left_bytes;
	sum->left_sites += one->left_sites;
	sum->changed_bytes += one->changed_bytes;
	sum->install_ns += one->install_ns;
	sum->plan_ns += one->plan_ns;
	if (one->pause_ns > sum->pause_ns)
		sum->pause_ns = one->pause_ns;
}

static void print_tags(const char *what, const size_t *count, FILE *to)
{
	for (size_t i = 0; i < DP_TAG_COUNT; i++)
		if (count[i])
			fprintf(to, ", %s %s %zu", what, dp_tag_name((enum dp_tag)i), count[i]);
}

void tally_print(const struct tally *t, FILE *to)
{
	fprintf(to, "asked %zu", t->asked);
	for (int i = 0; i < DP_TACTIC_COUNT; i++)
		if (t->placed[i])
			fprintf(to, ", %s %zu", dp_tactic_name((enum dp_tactic)i), t->placed[i]);
	print_tags("refused", t->refused, to);
	print_tags("not installed", t->no_install, to);
	print_tags("not opened", t->no_open, to);
	fprintf(to, ", hits %zu at %zu sites, lost %zu, planned in %.1f ms, installed in %.1f ms, pause %.2f ms", t->hits,
	        t->sites_hit, t->lost, (double)t->plan_ns / 1e6, (double)t->install_ns / 1e6, (double)t->pause_ns / 1e6);
	if (t->left_sites || t->left_bytes || t->changed_bytes)
		fprintf(to, ", left %zu sites and %zu bytes, text differs in %zu bytes", t->left_sites, t->left_bytes,
		        t->changed_bytes);
	fputc('\n', to);
}

static void json_tags(const char *name, const size_t *count, FILE *to)
{
	const char *comma = "";
	fprintf(to, ", \"%s\": {", name);
	for (size_t i = 0; i < DP_TAG_COUNT; i++) {
		if (!count[i])
			continue;
		fprintf(to, "%s\"%s\": %zu", comma, dp_tag_name((enum dp_tag)i), count[i]);
		comma = ", ";
	}
	fputc('}', to);
}

void tally_json(const struct tally *t, FILE *to)
{
	fprintf(to, "{\"rounds\": %zu, \"asked\": %zu, \"placed\": {", t->rounds, t->asked);
	for (int i = 0; i < DP_TACTIC_COUNT; i++)
		fprintf(to, "%s\"%s\": %zu", i ? ", " : "", dp_tactic_name((enum dp_tactic)i), t->placed[i]);
	fputc('}', to);
	json_tags("refused", t->refused, to);
	json_tags("not_installed", t->no_install, to);
	json_tags("not_opened", t->no_open, to);
	fprintf(to,
	        ", \"hits\": %zu, \"sites_hit\": %zu, \"lost\": %zu, \"left_sites\": %zu, \"left_bytes\": %zu, "
	        "\"changed_bytes\": %zu, "
	        "\"pause_ms\": %.3f, \"plan_ms\": %.1f, \"install_ms\": %.1f}\n",
	        t->hits, t->sites_hit, t->lost, t->left_sites, t->left_bytes, t->changed_bytes, (double)t->pause_ns / 1e6,
	        (double)t->plan_ns / 1e6, (double)t->install_ns / 1e6);
}
