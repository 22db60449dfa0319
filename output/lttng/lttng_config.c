/* SPDX-License-Identifier: MIT */
/*
 * Reads the kind of XML that `lttng save` writes: elements without relevant attributes, text in the leaves. Used because a daemon
 * of version 2.13.9 crashes when it lists the rules of a session that has an exclusion; saving works.
 *
 *   domain { type, channels { channel { enabled, events { event { name, enabled, type, loglevel_type,
 *                                                                  exclusions { exclusion } } } } } }
 */
#include "output/lttng/lttng_rules.h"

#include <string.h>

enum { DEPTH_MAX = 32, TEXT_MAX = 512 };

struct word {
	const char *at;
	size_t len;
};

struct reader {
	const char *name; /* the event to look for, or NULL: any dynprobe event */
	struct word open[DEPTH_MAX];
	size_t depth;
	char text[TEXT_MAX]; /* since the last tag */
	bool user_space, channel_on, covers;
	bool enabled, tracepoint, meets, all_levels, excluded; /* for the current event */
};

static bool is(struct word w, const char *name)
{
	return strlen(name) == w.len && !memcmp(w.at, name, w.len);
}

/* Is the innermost open element `name`, with the parent `parent`? */
static bool in(const struct reader *r, const char *parent, const char *name)
{
	return r->depth >= 2 && is(r->open[r->depth - 1], name) && is(r->open[r->depth - 2], parent);
}

static void begin(struct reader *r, struct word name)
{
	if (r->depth < DEPTH_MAX)
		r->open[r->depth] = name;
	r->depth++;
	if (is(name, "domain"))
		r->user_space = false;
	else if (is(name, "channel"))
		r->channel_on = true;
	else if (is(name, "event")) {
		r->enabled = r->tracepoint = r->meets = r->excluded = false;
		r->all_levels = true;
	}
}

static void end_of_event_part(struct reader *r)
{
	if (in(r, "event", "name"))
		r->meets = r->name ? dp_lttng_rule_matches(r->text, r->name) : dp_lttng_rule_meets(r->text);
	else if (in(r, "event", "enabled"))
		r->enabled = !strcmp(r->text, "true");
	else if (in(r, "event", "type"))
		r->tracepoint = !strcmp(r->text, "TRACEPOINT");
	else if (in(r, "event", "loglevel_type"))
		r->all_levels = !strcmp(r->text, "ALL");
	else if (in(r, "exclusions", "exclusion"))
		r->excluded |= r->name ? dp_lttng_rule_matches(r->text, r->name) : dp_lttng_exclusion_covers(r->text);
}

static void end(struct reader *r)
{
	if (r->depth <= DEPTH_MAX) {
		if (in(r, "domain", "type"))
			r->user_space = !strcmp(r->text, "UST");
		else if (in(r, "channel", "enabled"))
			r->channel_on = !strcmp(r->text, "true");
		else if (in(r, "events", "event"))
			r->covers |= r->user_space && r->channel_on && r->enabled && r->tracepoint && r->meets && r->all_levels &&
			             !r->excluded;
		else
			end_of_event_part(r);
	}
	if (r->depth)
		r->depth--;
}

static size_t entity(const char *xml, char *c)
{
	static const struct {
		const char *name, value;
	} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
	for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
		if (!strncmp(xml, entities[i].name, strlen(entities[i].name))) {
			*c = entities[i].value;
			return strlen(entities[i].name);
		}
	*c = *xml;
	return 1;
}

/* Reads text up to the next tag. Text longer than any LTTng name is cut: it matches nothing. */
static const char *read_text(struct reader *r, const char *xml)
{
	size_t n = 0;
	while (*xml && *xml != '<') {
		char c;
		xml += entity(xml, &c);
		if (n < sizeof(r->text) - 1)
			r->text[n++] = c;
	}
	r->text[n] = '\0';
	return xml;
}

static bool covers(const char *xml, const char *event)
{
	struct reader r = {.name = event};
	for (xml = read_text(&r, xml); *xml == '<'; xml = read_text(&r, xml)) {
		const char *close = strchr(xml, '>');
		if (!close)
			return false;
		const bool ends = xml[1] == '/', empty = close[-1] == '/';
		const struct word name = {xml + 1, strcspn(xml + 1, " \t\r\n/>")};
		if (ends) {
			end(&r);
		} else if (xml[1] != '?' && xml[1] != '!') {
			begin(&r, name);
			if (empty) {
				r.text[0] = '\0';
				end(&r);
			}
		}
		xml = close + 1;
	}
	return r.covers && !r.depth;
}

bool dp_lttng_config_covers(const char *xml)
{
	return covers(xml, NULL);
}

bool dp_lttng_config_wants(const char *xml, const char *name)
{
	return covers(xml, name);
}
