/* SPDX-License-Identifier: MIT */
#include "output/timeline/timeline.h"

#include "base/text_hash.h"
#include "output/flame/flame_internal.h"
#include "output/format/put.h"
#include "output/page/page.h"

#include <stdlib.h>
#include <string.h>

#define PART 16384u /* events */

/* Embedded by cmake/dynprobe.cmake. */
extern const char dp_timeline_page[], dp_timeline_page_end[], dp_timeline_style[], dp_timeline_style_end[], dp_timeline_data[],
        dp_timeline_data_end[], dp_timeline_lanes[], dp_timeline_lanes_end[], dp_timeline_views[], dp_timeline_views_end[],
        dp_timeline_main[], dp_timeline_main_end[];
extern const char dp_flame_style[], dp_flame_style_end[], dp_flame_script[], dp_flame_script_end[];

enum column { TIME, THREAD, PROBE, DURATION, STACK, COLUMNS };

struct thread {
	struct {
		pid_t pid, tid;
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

struct probe {
	char *name;
	uint32_t number;
	UT_hash_handle hh;
};

struct dp_timeline {
	FILE *to;
	struct dp_page page;
	struct dp_arena arena;
	struct thread *threads;
	struct probe *probes;
	struct dp_buf thread_list, probe_list, notes; /* JSON, so far */
	uint32_t nthreads, nprobes;
	struct dp_flame *stacks; /* as a tree: a stack is the node of its innermost frame */
	struct dp_buf column[COLUMNS], text;
	uint64_t n, begin, last;
	char *title;
	bool failed;
};

/* ---- parts ----------------------------------------------------------------------------------------------------------------- */

/* Seven bits a byte, the lowest first. */
static void put_number(struct dp_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;
	for (; v > 127; v >>= 7)
		bytes[n++] = (uint8_t)(v | 128);
	bytes[n++] = (uint8_t)v;
	dp_buf_put(b, bytes, n);
}

static struct dp_error *put_part(struct dp_timeline *t, const struct dp_buf *b)
{
	if (b->failed)
		return dp_error_nomem();
	fputs("<script type=\"text/plain\" class=\"part\">", t->to);
	DP_TRY(dp_page_put_packed(t->to, b->data ? b->data : (const uint8_t *)"", b->len));
	fputs("</script>\n", t->to);
	return ferror(t->to) ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the page") : NULL;
}

/* The columns, one behind the other; then the texts. */
static struct dp_error *put_events(struct dp_timeline *t)
{
	struct dp_buf all = {0};
	for (size_t i = 0; i < COLUMNS; i++) {
		dp_buf_put(&all, t->column[i].data, t->column[i].len);
		all.failed |= t->column[i].failed;
		t->column[i].len = 0;
	}
	struct dp_error *err = put_part(t, &all);
	dp_buf_fini(&all);
	if (!err)
		err = put_part(t, &t->text);
	t->text.len = 0;
	return err;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static uint32_t thread_of(struct dp_timeline *t, const struct dp_timeline_event *e)
{
	struct thread *found, key = {.key = {e->pid, e->tid}};
	HASH_FIND(hh, t->threads, &key.key, sizeof(key.key), found);
	if (found)
		return found->number;
	found = dp_arena_alloc(&t->arena, sizeof(*found));
	if (!found)
		return 0;
	found->key.pid = e->pid;
	found->key.tid = e->tid;
	found->number = t->nthreads++;
	HASH_ADD(hh, t->threads, key, sizeof(found->key), found);
	dp_buf_printf(&t->thread_list, "%s[%d,%d,", found->number ? "," : "", e->pid, e->tid);
	dp_put_json_str(&t->thread_list, e->comm ? e->comm : "");
	dp_put_str(&t->thread_list, "]");
	return found->number;
}

static uint32_t probe_of(struct dp_timeline *t, const char *name)
{
	struct probe *found;
	HASH_FIND_STR(t->probes, name, found);
	if (found)
		return found->number;
	found = dp_arena_alloc(&t->arena, sizeof(*found));
	char *copy = found ? dp_arena_copy(&t->arena, name, strlen(name)) : NULL;
	if (!copy)
		return 0;
	found->name = copy;
	found->number = t->nprobes++;
	HASH_ADD_KEYPTR(hh, t->probes, copy, strlen(copy), found);
	dp_put_str(&t->probe_list, found->number ? "," : "");
	dp_put_json_str(&t->probe_list, name);
	return found->number;
}

uint32_t dp_timeline_stack(struct dp_timeline *t, const char *const *frame, size_t n)
{
	const uint32_t node = dp_flame_stack(t->stacks, frame, n);
	t->failed |= node == DP_FLAME_NONE;
	return node == DP_FLAME_NONE ? 0 : node;
}

struct dp_error *dp_timeline_add(struct dp_timeline *t, const struct dp_timeline_event *e)
{
	if (!t->n)
		t->begin = t->last = e->ns;
	put_number(&t->column[TIME], e->ns > t->last ? e->ns - t->last : 0);
	put_number(&t->column[THREAD], thread_of(t, e));
	put_number(&t->column[PROBE], probe_of(t, e->probe));
	put_number(&t->column[DURATION], e->duration + 1);
	put_number(&t->column[STACK], e->stack);
	dp_buf_put(&t->text, e->text, e->n);
	dp_buf_put(&t->text, "\n", 1);
	t->last = e->ns > t->last ? e->ns : t->last;
	return ++t->n % PART ? NULL : put_events(t);
}

uint64_t dp_timeline_events(const struct dp_timeline *t)
{
	return t->n;
}

void dp_timeline_note(struct dp_timeline *t, const char *text)
{
	dp_put_str(&t->notes, t->notes.len ? "," : "");
	dp_put_json_str(&t->notes, text);
}

/* ---- the page -------------------------------------------------------------------------------------------------------------- */

/* Parents come before their children: the name and the parent of each node but the root. */
static struct dp_error *put_stacks(struct dp_timeline *t)
{
	struct dp_buf b = {0};
	for (size_t i = 1; i < t->stacks->n; i++)
		put_number(&b, t->stacks->node[i].parent);
	for (size_t i = 1; i < t->stacks->n; i++)
		put_number(&b, t->stacks->node[i].name);
	struct dp_error *err = put_part(t, &b);
	dp_buf_fini(&b);
	return err;
}

static void put_list(struct dp_buf *b, const char *key, const struct dp_buf *list)
{
	dp_buf_printf(b, ",\"%s\":[", key);
	dp_buf_put(b, list->data, list->len);
	dp_put_str(b, "]");
	b->failed |= list->failed;
}

static struct dp_error *put_about(struct dp_timeline *t, int64_t clock_offset)
{
	struct dp_buf b = {0};
	dp_put_json_member(&b, "{", "title", t->title);
	dp_buf_printf(&b, ",\"n\":%llu,\"part\":%u,\"begin\":\"%lld\",\"nodes\":%zu", (unsigned long long)t->n, PART,
	              (long long)(t->begin + (uint64_t)clock_offset), t->stacks->n);
	put_list(&b, "threads", &t->thread_list);
	put_list(&b, "probes", &t->probe_list);
	put_list(&b, "notes", &t->notes);
	dp_put_str(&b, ",\"frames\":[");
	for (size_t i = 0; i < t->stacks->nnames; i++) {
		dp_put_str(&b, i ? "," : "");
		dp_put_json_str(&b, t->stacks->name[i]);
	}
	dp_put_str(&b, "]}");
	struct dp_error *err = put_part(t, &b);
	dp_buf_fini(&b);
	return err;
}

struct dp_error *dp_timeline_create(FILE *to, const char *title, struct dp_timeline **ret)
{
	struct dp_timeline *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	t->to = to;
	t->title = strdup(title);
	struct dp_error *err = t->title ? dp_flame_create(&t->stacks) : dp_error_nomem();
	if (err) {
		dp_timeline_destroy(t);
		return err;
	}
	t->page = (struct dp_page){dp_timeline_page, dp_timeline_page_end, to, false};
	dp_page_until(&t->page, "@STYLE@");
	dp_page_put(&t->page, &(struct dp_page_file){dp_flame_style, dp_flame_style_end});
	dp_page_put(&t->page, &(struct dp_page_file){dp_timeline_style, dp_timeline_style_end});
	dp_page_until(&t->page, "@PARTS@");
	*ret = t;
	return NULL;
}

struct dp_timeline *dp_timeline_destroy(struct dp_timeline *t)
{
	if (!t)
		return NULL;
	HASH_CLEAR(hh, t->threads);
	HASH_CLEAR(hh, t->probes);
	dp_arena_fini(&t->arena);
	dp_flame_destroy(t->stacks);
	for (size_t i = 0; i < COLUMNS; i++)
		dp_buf_fini(&t->column[i]);
	dp_buf_fini(&t->text);
	dp_buf_fini(&t->thread_list);
	dp_buf_fini(&t->probe_list);
	dp_buf_fini(&t->notes);
	free(t->title);
	free(t);
	return NULL;
}

struct dp_error *dp_timeline_end(struct dp_timeline *t, int64_t clock_offset)
{
	if (t->failed || t->arena.failed)
		return dp_error_nomem();
	if (t->n % PART)
		DP_TRY(put_events(t));
	DP_TRY(put_stacks(t));
	DP_TRY(put_about(t, clock_offset));
	dp_page_until(&t->page, "@SCRIPT@");
	dp_page_put(&t->page, &(struct dp_page_file){dp_flame_script, dp_flame_script_end});
	dp_page_put(&t->page, &(struct dp_page_file){dp_timeline_data, dp_timeline_data_end});
	dp_page_put(&t->page, &(struct dp_page_file){dp_timeline_lanes, dp_timeline_lanes_end});
	dp_page_put(&t->page, &(struct dp_page_file){dp_timeline_views, dp_timeline_views_end});
	dp_page_put(&t->page, &(struct dp_page_file){dp_timeline_main, dp_timeline_main_end});
	return dp_page_end(&t->page);
}
