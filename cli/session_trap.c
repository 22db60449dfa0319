/* SPDX-License-Identifier: MIT */
/*
 * A session with traps. They come last: first everything is planned without them. If a probe is refused that a trap could take,
 * the program's system calls are looked through for those that need a hook, and all is planned once more, with hooks and traps.
 */
#include "cli/session_trap.h"

#include <stdlib.h>
#include <string.h>

struct dp_session_trap {
	struct dp_hook_place *hook;
	struct dp_text *text; /* of each hook's function: requests have to live as long as the planner */
	size_t n;
};

struct dp_session_trap *dp_session_trap_destroy(struct dp_session_trap *trap)
{
	if (trap) {
		free(trap->hook);
		free(trap->text);
	}
	free(trap);
	return NULL;
}

/* ---- which probes could do with a trap ------------------------------------------------------------------------------------- */

/* Refused for want of room, or because it raises a signal by design, which the handler would put right. */
static bool for_want_of_room(const struct dp_place *place)
{
	if (!place->refused)
		return false;
	switch (place->refused->tag) {
	case DP_TAG_TOO_SHORT:
	case DP_TAG_NO_SPACE:
	case DP_TAG_OVERLAP:
	case DP_TAG_CROSS_PAGE:
	case DP_TAG_UNRELOCATABLE:
		return true;
	default:
		return false;
	}
}

bool dp_session_trap_wanted(const struct dp_session *s)
{
	if (s->options->no_trap || !(s->options->tactics >> DP_TACTIC_TRAP & 1))
		return false;
	for (size_t i = 0; i < s->options->nprobes; i++)
		if (for_want_of_room(&s->place[i]))
			return true;
	return false;
}

/* ---- which probes follow pointers ------------------------------------------------------------------------------------------ */

static bool follows_pointers(const struct dp_probe *p)
{
	return dp_fields_may_fault(&p->fields) || (p->when && dp_expr_may_fail(p->when));
}

/*
 * Only for probes that go with their tool: what comes later (a debugger, a filter) is then foreseeable. What pends would need
 * hooks in libraries that are not there yet.
 */
bool dp_session_faults_wanted(const struct dp_session *s)
{
	const struct dp_options *o = s->options;
	if (s->no_faults || o->no_trap || o->attach || o->dry_run || o->pending || s->lttng)
		return false;
	for (size_t i = 0; i < o->nprobes; i++)
		if (!s->place[i].refused && follows_pointers(&o->probe[i]))
			return true;
	return false;
}

unsigned dp_session_tactics(const struct dp_session *s)
{
	const unsigned asked = s->options->tactics ? s->options->tactics : DP_TACTICS_JUMPS;
	const unsigned now = s->trap && !s->options->no_trap ? asked : asked & DP_TACTICS_JUMPS;
	return now ? now : 1u << DP_TACTIC_COUNT; /* none at all; 0 would be every jump */
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *add_hook(struct dp_session_trap *trap, const struct dp_hook_place *hook, const struct dp_text *text)
{
	struct dp_hook_place *hooks = realloc(trap->hook, (trap->n + 1) * sizeof(*hooks));
	if (hooks)
		trap->hook = hooks;
	struct dp_text *texts = realloc(trap->text, (trap->n + 1) * sizeof(*texts));
	if (texts)
		trap->text = texts;
	if (!hooks || !texts)
		return dp_error(DP_TAG_NOMEM, "out of memory for the hooks");
	hooks[trap->n] = *hook;
	texts[trap->n++] = *text;
	return NULL;
}

static struct dp_error *look_at(struct dp_session *s, struct dp_session_trap *trap, struct dp_texts *texts, struct dp_module *m,
                                uint64_t addr)
{
	struct dp_site site = {.addr = dp_addr_of(addr), .module = m};
	const struct dp_text *text;
	struct dp_hook_place hook;
	dp_image_function_at(dp_target_image(s->target), site.addr, &site.function);
	DP_TRY(dp_texts_get(texts, &site, &text));
	struct dp_error *err = dp_hook_place(text, addr, &hook);
	if (err)
		return dp_error_wrap(err, "%s", dp_module_name(m));
	return hook.site ? add_hook(trap, &hook, text) : NULL;
}

/* Every place of the module's code where the two bytes of a syscall stand. */
static struct dp_error *scan_module(struct dp_session *s, struct dp_session_trap *trap, struct dp_texts *texts,
                                    struct dp_module *m)
{
	static const uint8_t syscall[] = {0x0f, 0x05};
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr addr;
		const uint8_t *bytes, *at;
		size_t n;
		bool exec;
		if (!dp_module_segment(m, i, &addr, &bytes, &n, &exec) || !exec)
			continue;
		for (at = bytes; (at = memmem(at, n - (size_t)(at - bytes), syscall, sizeof(syscall))); at++)
			DP_TRY(look_at(s, trap, texts, m, addr.v + (uint64_t)(at - bytes)));
	}
	return NULL;
}

static struct dp_error *scan(struct dp_session *s, struct dp_session_trap *trap)
{
	struct dp_image *image = dp_target_image(s->target);
	struct dp_texts *texts = NULL;
	DP_TRY(dp_texts_create(image, &texts));
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < dp_image_nmodules(image); i++) {
		struct dp_module *m = dp_image_module(image, i);
		if (dp_module_path(m)[0] == '/') /* not the vdso, which only asks for the time */
			err = scan_module(s, trap, texts, m);
	}
	dp_texts_destroy(texts);
	return err;
}

struct dp_error *dp_session_trap_begin(struct dp_session *s)
{
	struct dp_session_trap *trap = calloc(1, sizeof(*trap));
	if (!trap)
		return dp_error(DP_TAG_NOMEM, "out of memory for the hooks");
	struct dp_error *err = dp_target_trap_check(s->target);
	if (!err)
		err = scan(s, trap);
	if (!err)
		err = dp_target_trap_room(s->target, trap->hook, trap->n);
	if (!err)
		dp_target_faults_want(s->target, !s->no_faults);
	size_t *planned = err ? NULL
	                      : realloc(s->planned, (DP_PLANS_PER_REQUEST * (s->options->nprobes + trap->n) + DP_OWN_SITES) *
	                                                    sizeof(*planned));
	if (!err && !planned)
		err = dp_error(DP_TAG_NOMEM, "out of memory for the hooks");
	if (err) {
		dp_session_trap_destroy(trap);
		return err;
	}
	s->planned = planned;
	s->trap = trap;
	return NULL;
}

static struct dp_error *plan_hook(struct dp_session *s, struct dp_planner *planner, struct dp_texts *texts, size_t i, uint64_t at)
{
	const struct dp_hook_place *hook = &s->trap->hook[i];
	struct dp_image *image = dp_target_image(s->target);
	struct dp_site site = {.addr = dp_addr_of(at), .module = dp_image_module_at(image, dp_addr_of(at))};
	const struct dp_text *text;
	struct dp_plan plan;
	dp_image_function_at(image, site.addr, &site.function);
	DP_TRY(dp_texts_get(texts, &site, &text));
	s->trap->text[i] = *text;
	const bool in_front = at == hook->site && at != hook->syscall; /* there it holds the jump */
	const struct dp_request request = {
	        .site = at,
	        .probe = DP_NO_PROBE,
	        .text = &s->trap->text[i],
	        .hook = s->options->dry_run ? DP_NOWHERE : dp_target_trap_hook(s->target),
	        .syscall = hook->syscall,
	        .any_call = hook->any,
	        .tactics = in_front ? 1u << DP_TACTIC_JUMP : DP_TACTICS_JUMPS,
	};
	return dp_planner_add(planner, &request, &plan);
}

struct dp_error *dp_session_trap_plan(struct dp_session *s, struct dp_planner *planner, struct dp_texts *texts)
{
	for (size_t i = 0; s->trap && i < s->trap->n; i++) {
		const struct dp_hook_place *hook = &s->trap->hook[i];
		const uint64_t choice[] = {hook->site, hook->other, hook->site == hook->syscall ? 0 : hook->syscall};
		struct dp_error *err = NULL;
		for (size_t k = 0; k < sizeof(choice) / sizeof(*choice) && (!k || err); k++)
			if (choice[k]) {
				dp_error_destroy(err);
				err = plan_hook(s, planner, texts, i, choice[k]);
			}
		if (err)
			return dp_error_wrap(err, "no hook fits on the system call at 0x%llx", (unsigned long long)hook->syscall);
	}
	return NULL;
}

/* ---- what is told
 * -------------------------------------------------------------------------------------------------------------- */

void dp_session_trap_retry(struct dp_session *s)
{
	for (size_t i = 0; i < s->options->nprobes; i++)
		if (for_want_of_room(&s->place[i]))
			s->place[i].refused = dp_error_destroy(s->place[i].refused);
	s->unhooked = dp_error_destroy(s->unhooked);
	s->hooked = false;
	s->nplanned = 0;
}

/* What was made for the handler is unmade; everything may be planned anew. */
void dp_session_trap_forget(struct dp_session *s)
{
	s->trap = dp_session_trap_destroy(s->trap);
	dp_error_destroy(dp_target_trap_room(s->target, NULL, 0));
	dp_target_faults_want(s->target, false);
	dp_session_trap_retry(s);
}

void dp_session_faults_refuse(struct dp_session *s, struct dp_error *why)
{
	dp_session_trap_forget(s);
	s->no_faults = true;
	if (s->options->verbose)
		fprintf(stderr, "dynprobe: memory is read by system calls: %s%s%s\n", why->message, why->cause ? ": " : "",
		        why->cause ? why->cause->message : "");
	dp_error_destroy(why);
}

void dp_session_trap_refuse(struct dp_session *s, const struct dp_error *why)
{
	s->trap = dp_session_trap_destroy(s->trap);
	dp_error_destroy(dp_target_trap_room(s->target, NULL, 0));
	for (size_t i = 0; i < s->options->nprobes; i++)
		if (for_want_of_room(&s->place[i])) {
			struct dp_error *one = s->place[i].refused;
			s->place[i].refused = dp_error(DP_TAG_TRAP_UNSAFE, "%s; and no trap: %s%s%s", one->message, why->message,
			                               why->cause ? ": " : "", why->cause ? why->cause->message : "");
			dp_error_destroy(one);
		}
}
