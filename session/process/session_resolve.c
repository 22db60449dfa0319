/* SPDX-License-Identifier: MIT */
/* Resolves probes to addresses in one target. */
#include "session/process/pending.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *make_places(struct dp_session *s)
{
	const size_t n = s->trace->nprobes;
	s->place = calloc(n, sizeof(*s->place));
	s->planned = calloc(DP_PLANS_PER_REQUEST * 2 * n + DP_OWN_SITES, sizeof(*s->planned));
	s->loss = calloc(n, sizeof(*s->loss));
	return s->place && s->planned && s->loss ? NULL : dp_error_nomem();
}

/*
 * An instruction that a pattern stands for was found in the first target's file. The same build has the same instruction there;
 * another build may have anything there.
 */
static struct dp_error *check_instruction(const struct dp_probe *p, const struct dp_site *site, const struct dp_text *text)
{
	if (!p->build_id)
		return dp_text_check_boundary(text, site->addr.v);
	if (strcmp(p->build_id, dp_module_build_id(site->module)))
		return dp_error(
		        DP_TAG_NO_SYMBOL,
		        "%s is another build than the one in which '%s' was found: probe this process in a run of its own",
		        dp_module_path(site->module), p->spec.text);
	return *p->build_id ? NULL : dp_text_check_boundary(text, site->addr.v);
}

/* A function's probe is placed after its endbr64, where indirect calls must arrive. */
static struct dp_error *resolve_probe(struct dp_session *s, struct dp_code_view *view, size_t i)
{
	const struct dp_probe *p = &s->trace->probe[i];
	const struct dp_text *text;
	struct dp_site site;
	if (p->refused)
		return dp_error(p->refused->tag, "%s", p->refused->message);
	/* An address may be outside of all files' code: this check has better messages than "no function". */
	if (!p->spec.symbol && !p->spec.module)
		DP_TRY(dp_target_check_site(s->target, &(struct dp_site){.addr = dp_addr_of(p->spec.value)}));
	DP_TRY(dp_image_resolve(dp_target_image(s->target), &p->spec, &site));
	DP_TRY(dp_target_check_site(s->target, &site));
	DP_TRY(dp_code_view_get(view, &site, &text));
	if (p->entry)
		site.addr = dp_addr_add(site.addr, (int64_t)dp_text_endbr(text, site.addr.v));
	DP_TRY(check_instruction(p, &site, text));
	s->place[i].addr = site.addr.v;
	return NULL;
}

/* A loaded library does not get more symbols. */
static bool may_wait(const struct dp_session *s, size_t i, const struct dp_error *err)
{
	const struct dp_probe *p = &s->trace->probe[i];
	if (p->came)
		return err->tag == DP_TAG_NO_MODULE;
	return !p->selected && (err->tag == DP_TAG_NO_MODULE || (err->tag == DP_TAG_NO_SYMBOL && !p->spec.module));
}

/* --all: the process has the module, but a pattern's place is known in another build only. */
static bool is_other_build(const struct dp_session *s, size_t i)
{
	const struct dp_probe *p = &s->trace->probe[i];
	return s->trace->all && p->build_id && p->spec.module && dp_image_has_module(dp_target_image(s->target), &p->spec);
}

/* Then the name is probably misspelled, and no library will have it. */
static bool has_suggestion(const struct dp_error *err)
{
	return strstr(err->message, "did you mean");
}

/* Suggestions begin with the best one; those of other modules are written with the module. */
const char *dp_session_near(const struct dp_session *s, size_t i, const struct dp_error *err)
{
	static const char begin[] = "; did you mean ";
	const char *near = strstr(err->message, begin);
	const char *best = near ? near + sizeof(begin) - 1 : NULL;
	return near && (s->trace->probe[i].spec.module || !memchr(best, '!', strcspn(best, ",? "))) ? near : "";
}

/* --pending: the name may still come, but a misspelled one never does. */
static void warn_of_name(const struct dp_session *s, size_t i, const struct dp_error *err)
{
	const char *near = dp_session_near(s, i, err);
	if (*near)
		dp_trace_log(s->trace, DP_LOG_WARNING, "'%s' is not in %d (%s)%s", s->trace->probe[i].spec.text,
		             dp_target_pid(s->target), dp_target_comm(s->target), near);
}

/* Programs that only prepare the start of another. */
static bool is_launcher(const struct dp_session *s)
{
	static const char *const name[] = {"sh",     "dash",    "bash",    "zsh",   "ksh",     "fish",    "busybox", "env",
	                                   "nice",   "ionice",  "nohup",   "sudo",  "timeout", "setsid",  "stdbuf",  "taskset",
	                                   "chroot", "unshare", "runuser", "xargs", "time",    "numactl", "nsenter"};
	const char *path = dp_module_path(dp_image_module(dp_target_image(s->target), 0));
	const char *slash = strrchr(path, '/');
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (!strcmp(slash ? slash + 1 : path, name[i]))
			return true;
	return false;
}

struct dp_error *dp_session_advise(const struct dp_session *s, struct dp_error *err)
{
	const bool absent = err->tag == DP_TAG_NO_SYMBOL || err->tag == DP_TAG_STRIPPED || err->tag == DP_TAG_NO_MODULE;
	if (!absent || !s->trace->command || s->trace->follow || !is_launcher(s))
		return err;
	return dp_error_advise(
	        err, "the command is a shell, a script or a wrapper, which starts other programs: with --follow (as root) "
	             "these get the probes");
}

/* `late`: a library that is loaded later may have it. */
static struct dp_error *not_found(struct dp_session *s, size_t i, bool late, struct dp_error *err)
{
	const struct dp_spec *spec = &s->trace->probe[i].spec;
	err = dp_image_explain_unknown(dp_target_image(s->target), spec, err);
	err = dp_error_wrap(err, "probe '%s' in %d (%s)%s", spec->text, dp_target_pid(s->target), dp_target_comm(s->target),
	                    late && err->tag == DP_TAG_NO_SYMBOL && !s->trace->attach && !has_suggestion(err)
	                            ? "; if a library that is loaded later has it, use --pending"
	                            : "");
	return dp_session_advise(s, err);
}

static struct dp_error *resolve_all(struct dp_session *s, struct dp_code_view *view)
{
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		DP_TRY(dp_trace_step(s->trace, "looking up", i, s->trace->nprobes));
		if (s->trace->probe[i].waits) {
			s->place[i].pending = true;
			continue;
		}
		struct dp_error *err = resolve_probe(s, view, i);
		const bool late = err && may_wait(s, i, err);
		if (late && s->trace->pending) {
			s->place[i].pending = true;
			warn_of_name(s, i, err);
			dp_error_destroy(err);
		} else if (err && s->partial && !is_other_build(s, i) &&
		           (err->tag == DP_TAG_NO_SYMBOL || err->tag == DP_TAG_NO_MODULE)) {
			s->place[i].refused = err;
			s->place[i].absent = true;
		} else if (err && (s->trace->probe[i].selected || s->trace->probe[i].refused))
			s->place[i].refused = err;
		else if (err)
			return not_found(s, i, late, err);
	}
	return NULL;
}

/* A probe on an allocator that the program does not use looks like one whose code never runs. */
static void warn_of_allocators(const struct dp_session *s)
{
	struct dp_image *image = dp_target_image(s->target);
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		const struct dp_spec *spec = &s->trace->probe[i].spec;
		const bool here = spec->symbol && s->place[i].addr;
		const struct dp_module *m = here ? dp_image_module_at(image, dp_addr_of(s->place[i].addr)) : NULL;
		const struct dp_module *used = m ? dp_image_interposer(image, m, spec->symbol) : NULL;
		if (used)
			dp_trace_log(s->trace, DP_LOG_WARNING, "%s may never hit: the program has an allocator of its own, %s!%s",
			             spec->text, dp_module_name(used), spec->symbol);
	}
}

struct dp_error *dp_session_resolve(struct dp_session *s)
{
	struct dp_code_view *view = NULL;
	DP_TRY(make_places(s));
	DP_TRY(dp_code_view_create(dp_target_image(s->target), &view));
	struct dp_error *err = resolve_all(s, view);
	dp_code_view_destroy(view);
	if (!err)
		warn_of_allocators(s);
	return err || !s->trace->pending ? err : dp_pending_begin(s);
}

bool dp_session_has_places(const struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (!s->place[i].refused)
			return true;
	return false;
}

struct dp_error *dp_session_resolve_beside(struct dp_session *later, const struct dp_session *s)
{
	struct dp_code_view *view = NULL;
	struct dp_image *image = dp_target_image(later->target);
	DP_TRY(make_places(later));
	DP_TRY(dp_code_view_create(image, &view));
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		struct dp_place *place = &later->place[i];
		const struct dp_spec *spec = &s->trace->probe[i].spec;
		place->pending =
		        !s->place[i].pending || s->trace->probe[i].waits || (spec->module && !dp_image_has_module(image, spec));
		if (place->pending)
			continue;
		place->refused = resolve_probe(later, view, i);
		place->pending = place->refused && may_wait(later, i, place->refused);
		if (place->pending)
			place->refused = dp_error_destroy(place->refused);
	}
	dp_code_view_destroy(view);
	return NULL;
}

struct dp_error *dp_session_find_function(struct dp_session *s, struct dp_code_view *view, const char *name, struct dp_site *site,
                                          const struct dp_text **text)
{
	struct dp_spec spec = {0};
	DP_TRY(dp_spec_parse(name, &spec));
	struct dp_error *err = dp_image_resolve(dp_target_image(s->target), &spec, site);
	dp_spec_fini(&spec);
	if (!err)
		err = dp_code_view_get(view, site, text);
	if (!err)
		site->addr = dp_addr_add(site->addr, (int64_t)dp_text_endbr(*text, site->addr.v));
	return err;
}
