/* SPDX-License-Identifier: MIT */
#include "base/path.h"
#include "cli/commands/list/command_list.h"

#include "base/cleanup.h"

#include "probes/debug/debug.h"
#include "trampoline/code/disassemble.h"
#include "trampoline/space/space.h"

#include <stdlib.h>
#include <string.h>

/* At the distance from code that an installation has. */
static const struct dp_runtime runtime = {
        .agent = 0x100000000000,
        .acquire = 0x100000100000,
        .read = 0x100000100100,
        .string = 0x100000100200,
        .backtrace = 0x100000100300,
        .park = 0x100000100380,
        .finish = 0x100000100400,
        .identity = DP_ID_SELF,
        .tid_offset = 0x2d0,
};
static const struct dp_fields no_fields;

struct dp_error *dp_verdicts_open(struct dp_image *image, unsigned tactics, uint64_t shown_bias, struct dp_verdicts *ret)
{
	*ret = (struct dp_verdicts){.image = image, .allowed = tactics, .shown_bias = shown_bias};
	struct dp_error *err = dp_code_view_create(image, &ret->view);
	if (!err)
		err = dp_space_from_image(image, &ret->space);
	if (err)
		dp_verdicts_close(ret);
	return err;
}

static void forget(struct dp_verdicts *v)
{
	for (size_t i = 0; i < v->n; i++)
		v->verdict[i].refused = dp_error_destroy(v->verdict[i].refused);
	v->n = 0;
}

void dp_verdicts_close(struct dp_verdicts *v)
{
	forget(v);
	free(v->site);
	free(v->verdict);
	dp_code_view_destroy(v->view);
	dp_space_destroy(v->space);
	*v = (struct dp_verdicts){0};
}

/* Restores the space for the next one. */
static void give_back(struct dp_verdicts *v, struct dp_planner *planner)
{
	const struct dp_extent *extent;
	const size_t n = dp_planner_extents(planner, &extent);
	for (size_t i = 0; i < n; i++)
		dp_space_release(v->space, extent[i].addr, extent[i].addr + extent[i].n);
}

static struct dp_error *ask(struct dp_verdicts *v, const struct dp_text *text, uint64_t addr, struct dp_plan *plan)
{
	struct dp_planner *planner = NULL;
	const struct dp_request request = {
	        .site = addr, .lost = runtime.agent, .text = text, .fields = &no_fields, .tactics = v->allowed};
	struct dp_runtime with_handler = runtime;
	with_handler.faults = v->handler;
	DP_TRY(dp_planner_create(v->space, &with_handler, &planner));
	struct dp_error *err = dp_planner_add(planner, &request, plan);
	give_back(v, planner);
	dp_planner_destroy(planner);
	return err;
}

static struct dp_error *reserve(struct dp_verdicts *v, size_t n)
{
	if (n <= v->capacity)
		return NULL;
	const size_t capacity = n < 256 ? 256 : 2 * n;
	struct dp_listed_site *site = realloc(v->site, capacity * sizeof(*site));
	v->site = site ? site : v->site;
	struct dp_verdict *verdict = site ? realloc(v->verdict, capacity * sizeof(*verdict)) : NULL;
	v->verdict = verdict ? verdict : v->verdict;
	if (!verdict)
		return dp_error_nomem();
	v->capacity = capacity;
	return NULL;
}

static void count(struct dp_verdicts *v, const struct dp_plan *plan, const struct dp_error *refused)
{
	v->asked++;
	if (refused)
		v->refusals[refused->tag]++;
	else
		v->tactics[plan->tactic]++;
}

/* The planner's error names the instruction, which is shown anyway; its cause is the reason. */
static const char *reason_of(const struct dp_error *refused)
{
	while (refused->cause)
		refused = refused->cause;
	return refused->message;
}

/* "server.c:120". */
static void find_source(struct dp_module *m, uint64_t addr, char source[DP_SITE_TEXT])
{
	struct dp_debug *debug;
	const char *path;
	int line;
	struct dp_error *err = dp_module_debug(m, &debug);
	*source = 0;
	if (!err && dp_debug_line_at(debug, dp_debug_pc(debug, dp_addr_of(addr)), &path, &line)) {
		snprintf(source, DP_SITE_TEXT, "%s:%d", dp_path_last(path), line);
	}
	dp_error_destroy(err);
}

/* "call 0x115a <ns::Shape::area>" */
static void name_target(const struct dp_verdicts *v, uint64_t addr, struct dp_verdict *one, size_t len)
{
	enum { CALL = 0xe8, JUMP = 0xe9 };
	struct dp_function f;
	int32_t distance;
	const size_t n = strlen(one->text);
	if (!v->names || len != 1 + sizeof(distance) || (one->bytes[0] != CALL && one->bytes[0] != JUMP))
		return;
	memcpy(&distance, one->bytes + 1, sizeof(distance));
	const uint64_t to = addr + len + (uint64_t)(int64_t)distance;
	if (dp_image_function_at(v->image, dp_addr_of(to), &f) && *f.name && f.start.v == to)
		snprintf(one->text + n, sizeof(one->text) - n, " <%s>", dp_function_readable(&f));
}

/* Adds the instruction at bytes[0..n); returns its length. Undecodable bytes up to the function's end count as one. */
static size_t add(struct dp_verdicts *v, const struct dp_text *text, uint64_t addr, const uint8_t *bytes, size_t n)
{
	struct dp_verdict *one = &v->verdict[v->n];
	struct dp_plan plan;
	const size_t len = dp_disassemble(bytes, n, addr - v->shown_bias, one->text, sizeof(one->text));
	const size_t shown = len ? len : n < sizeof(one->bytes) ? n : sizeof(one->bytes);
	memcpy(one->bytes, bytes, shown);
	name_target(v, addr, one, len);
	one->refused = ask(v, text, addr, &plan);
	count(v, &plan, one->refused);
	v->site[v->n] = (struct dp_listed_site){
	        .addr = addr - v->shown_bias,
	        .n = shown,
	        .tactic = one->refused ? NULL : dp_tactic_name(plan.tactic),
	        .tag = one->refused ? dp_tag_name(one->refused->tag) : NULL,
	        .reason = one->refused ? reason_of(one->refused) : NULL,
	};
	v->n++;
	return len ? len : n;
}

/* After growing: the storage may have moved. */
static void point_into_storage(struct dp_verdicts *v)
{
	for (size_t i = 0; i < v->n; i++) {
		v->site[i].bytes = v->verdict[i].bytes;
		v->site[i].text = v->verdict[i].text;
		v->site[i].source = *v->verdict[i].source ? v->verdict[i].source : NULL;
	}
}

struct dp_error *dp_verdicts_ask(struct dp_verdicts *v, const struct dp_function *f)
{
	const struct dp_text *text;
	size_t n = f->size;
	forget(v);
	if (!n)
		return reserve(v, 1);
	dp_auto_free uint8_t *bytes = malloc(n);
	if (!bytes)
		return dp_error_nomem();
	DP_TRY(dp_module_text(f->module, f->start, bytes, &n));
	DP_TRY(dp_code_view_get(v->view, &(struct dp_site){f->start, *f, f->module}, &text));
	for (size_t at = 0; at < n;) {
		DP_TRY(reserve(v, v->n + 1));
		find_source(f->module, f->start.v + at, v->verdict[v->n].source);
		at += add(v, text, f->start.v + at, bytes + at, n - at);
	}
	point_into_storage(v);
	return NULL;
}

void dp_verdicts_total(const struct dp_verdicts *v, FILE *to)
{
	size_t refused = 0;
	const char *before = " (";
	fprintf(to, "dynprobe: %zu instructions", v->asked);
	for (int i = 0; i < DP_TACTIC_COUNT; i++)
		if (v->tactics[i])
			fprintf(to, ", %zu %s", v->tactics[i], dp_tactic_name((enum dp_tactic)i));
	for (int i = 0; i < DP_TAG_COUNT; i++)
		refused += v->refusals[i];
	fprintf(to, ", %zu refused", refused);
	for (int i = 0; i < DP_TAG_COUNT; i++)
		if (v->refusals[i]) {
			fprintf(to, "%s%s %zu", before, dp_tag_name((enum dp_tag)i), v->refusals[i]);
			before = ", ";
		}
	fputs(refused ? ")\n" : "\n", to);
}
