/* SPDX-License-Identifier: MIT */
/* The manifest of resident probes: it is read back as it was written, and any other text is refused. */
#include "cli/options/options.h"
#include "session/manifest.h"

#include <criterion/criterion.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* The manifest of a command line. */
static struct dp_manifest asked(const char *line)
{
	struct dp_options o;
	struct dp_manifest m;
	char **words = NULL;
	int argc = 0;
	cr_assert_null(dp_words_split(line, &words));
	while (words[argc])
		argc++;
	cr_assert_null(dp_options_parse_verb(DP_VERB_ATTACH, argc, words, &o));
	cr_assert_null(dp_manifest_of(&o.trace, o.trace.sink == DP_SINK_LTTNG, o.trace.session, &m));
	dp_options_fini(&o);
	dp_words_free(words);
	return m;
}

static struct dp_manifest there_and_back(const struct dp_manifest *m)
{
	struct dp_manifest back;
	char *text = NULL;
	cr_assert_null(dp_manifest_write(m, &text));
	struct dp_error *err = dp_manifest_parse(text, &back);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	free(text);
	return back;
}

static void same_probe(const struct dp_manifest_probe *a, const struct dp_manifest_probe *b)
{
	cr_expect_str_eq(a->name, b->name);
	cr_expect_str_eq(a->spec, b->spec);
	cr_expect_eq(a->entry, b->entry);
	cr_expect_eq(a->event, b->event);
	cr_expect_eq(!a->typed.when, !b->typed.when);
	if (a->typed.when && b->typed.when)
		cr_expect_str_eq(a->typed.when, b->typed.when);
	cr_assert_eq(a->typed.ncontexts, b->typed.ncontexts);
	for (size_t i = 0; i < a->typed.ncontexts; i++)
		cr_expect_str_eq(a->typed.context[i], b->typed.context[i]);
	cr_expect_eq(a->leaves, b->leaves);
	cr_expect_eq(a->site, b->site);
}

static void same(const struct dp_manifest *a, const struct dp_manifest *b)
{
	cr_expect_eq(a->lttng, b->lttng);
	cr_expect_eq(!a->session, !b->session);
	if (a->session && b->session)
		cr_expect_str_eq(a->session, b->session);
	cr_expect_eq(!a->filter, !b->filter);
	if (a->filter && b->filter)
		cr_expect_str_eq(a->filter, b->filter);
	cr_assert_eq(a->n, b->n);
	for (size_t i = 0; i < a->n; i++)
		same_probe(&a->probe[i], &b->probe[i]);
}

Test(manifest, comes_back_as_it_was_asked)
{
	struct dp_manifest m = asked("attach --pid 1 -t regs --function foo --when 'arg0 > 4 && rsi != 2' --name other --probe "
	                             "'libc.so.6!malloc+0x4' -t string:s:0x10 -t backtrace:7");
	struct dp_manifest back = there_and_back(&m);
	cr_assert_eq(back.n, 2);
	cr_expect_eq(back.probe[0].typed.ncontexts, 1);
	cr_expect(back.probe[0].entry && !back.probe[1].entry);
	same(&m, &back);
	dp_manifest_fini(&back);
	dp_manifest_fini(&m);
}

Test(manifest, knows_the_session_its_filter_and_handles_beyond_two_to_the_63)
{
	struct dp_manifest m = asked("attach --pid 1 --function foo -t reg:rdi --session 'a \"b\" \\c' --filter 'rdi > 2'");
	m.probe[0].event = UINT64_MAX - 1;
	struct dp_manifest back = there_and_back(&m);
	cr_expect(back.lttng);
	cr_expect_eq(back.probe[0].event, UINT64_MAX - 1);
	same(&m, &back);
	dp_manifest_fini(&back);
	dp_manifest_fini(&m);
}

/* `n` probes with names of `len` characters. */
static struct dp_manifest many(size_t n, size_t len)
{
	struct dp_manifest m = {.n = n, .probe = calloc(n, sizeof(*m.probe))};
	for (size_t i = 0; i < n; i++) {
		struct dp_manifest_probe *p = &m.probe[i];
		p->name = malloc(len + 1);
		p->spec = strdup("PyUnicode_AsEncodedString");
		memset(p->name, 'x', len);
		p->name[len] = 0;
		for (size_t k = len, left = i; k-- > len - 6; left /= 10)
			p->name[k] = (char)('0' + left % 10);
		p->entry = true;
		p->site = UINT64_MAX;
	}
	return m;
}

Test(manifest, every_function_of_a_large_program_can_be_left_at_once)
{
	struct dp_manifest m = many(3614, 40), back = there_and_back(&m);
	same(&m, &back);
	dp_manifest_fini(&back);
	dp_manifest_fini(&m);
}

static void too_large(size_t n, size_t len)
{
	struct dp_manifest m = many(n, len);
	char *text = NULL;
	struct dp_error *err = dp_manifest_write(&m, &text);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_USAGE);
	cr_expect_null(text);
	dp_error_destroy(err);
	dp_manifest_fini(&m);
}

Test(manifest, too_large_a_text_is_refused_before_it_is_left)
{
	too_large(DP_MANIFEST_PROBES, 200);
}

Test(manifest, more_probes_than_can_be_read_back_are_refused_before_they_are_left)
{
	too_large(DP_MANIFEST_PROBES + 1, 8);
}

static void refused(const char *text)
{
	struct dp_manifest m;
	struct dp_error *err = dp_manifest_parse(text, &m);
	cr_assert_not_null(err, "%s", text);
	cr_expect_eq(err->tag, DP_TAG_MANIFEST, "%s: %s", text, dp_tag_name(err->tag));
	dp_error_destroy(err);
}

#define PROBE(members)   "{\"dynprobe\":1,\"sink\":\"ring\",\"probes\":[{" members "}]}"
#define GOOD             "\"name\":\"foo\",\"spec\":\"foo\",\"entry\":true,"
#define CONTEXTS(inside) PROBE(GOOD "\"contexts\":[" inside "]")

Test(manifest, refuse_DP_MANIFEST)
{
	struct dp_manifest m;
	cr_assert_null(dp_manifest_parse(CONTEXTS("\"reg:rdi\""), &m), "the unchanged text is valid");
	dp_manifest_fini(&m);
	static const char *const bad[] = {
	        "",
	        "\377\376",
	        "{",
	        "[]",
	        "{}",
	        "{\"dynprobe\":2,\"sink\":\"ring\",\"probes\":[]}",
	        "{\"dynprobe\":1,\"sink\":\"ring\",\"probes\":[]}",
	        "{\"dynprobe\":1,\"sink\":\"ring\",\"probes\":{}}",
	        "{\"dynprobe\":1,\"sink\":\"disk\",\"probes\":[{" GOOD "\"contexts\":[]}]}",
	        "{\"dynprobe\":1,\"sink\":7,\"probes\":[{" GOOD "\"contexts\":[]}]}",
	        "{\"dynprobe\":1,\"sink\":\"ring\",\"probes\":[7]}",
	        PROBE(GOOD),
	        PROBE(GOOD "\"contexts\":{}"),
	        PROBE("\"name\":\"fo o\",\"spec\":\"foo\",\"entry\":true,\"contexts\":[]"),
	        PROBE("\"name\":\"\\u001b[2J\",\"spec\":\"foo\",\"entry\":true,\"contexts\":[]"),
	        PROBE("\"name\":\"\",\"spec\":\"foo\",\"entry\":true,\"contexts\":[]"),
	        PROBE("\"name\":\"foo\",\"spec\":\"lib!\",\"entry\":true,\"contexts\":[]"),
	        PROBE("\"name\":\"foo\",\"spec\":\"foo\",\"entry\":1,\"contexts\":[]"),
	        PROBE(GOOD "\"contexts\":[],\"when\":\"rdi ==\""),
	        PROBE(GOOD "\"contexts\":[],\"event\":\"0xfffffffffffffffff\""),
	        PROBE(GOOD "\"contexts\":[],\"event\":\"12\""),
	        PROBE(GOOD "\"contexts\":[],\"event\":12"),
	        PROBE(GOOD "\"contexts\":[]},{" GOOD "\"contexts\":[]"),
	        PROBE(GOOD "\"contexts\":[],\"name\":\"bar\""),
	        CONTEXTS("\"reg:nonsense\""),
	        CONTEXTS("\"bytes[4000]:b:0x10\",\"bytes[4000]:c:0x10\""),
	        CONTEXTS("7"),
	        CONTEXTS("\"a\\u0000b\""),
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refused(bad[i]);
}

Test(manifest, deep_endless_and_huge_texts_are_refused)
{
	const size_t size = 512u << 10;
	char *text = malloc(size + 1);
	memset(text, '[', size);
	text[size] = '\0';
	refused(text);
	text[200u << 10] = '\0';
	refused(text);
	memset(text, ' ', size);
	refused(text);
	free(text);
}

/* Flips every bit of a valid text in turn: the parser refuses it, or returns a manifest that can be written and read again. */
Test(manifest, damaged_texts_never_come_back_as_something_else)
{
	struct dp_manifest m = asked("attach --pid 1 --function foo -t reg:rdi -t string:s:0x10 --when 'rdi > 4'");
	char *text = NULL;
	cr_assert_null(dp_manifest_write(&m, &text));
	for (size_t i = 0; text[i]; i++) {
		const char was = text[i];
		for (int bit = 0; bit < 8; bit++) {
			struct dp_manifest back;
			text[i] = (char)(was ^ 1 << bit);
			struct dp_error *err = dp_manifest_parse(text, &back);
			if (!err) {
				struct dp_manifest again = there_and_back(&back);
				same(&back, &again);
				dp_manifest_fini(&again);
				dp_manifest_fini(&back);
			}
			dp_error_destroy(err);
		}
		text[i] = was;
	}
	free(text);
	dp_manifest_fini(&m);
}
