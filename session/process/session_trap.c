/* SPDX-License-Identifier: MIT */
/*
 * A session with traps. First everything is planned without them. If a probe is refused for which a trap may be tried, the code
 * of the program's modules is searched for system calls that need a hook, and everything is planned again, with hooks and traps.
 */
#include "session/process/session_trap.h"

#include "session/code/hooks.h"

#include <stdlib.h>

#define RETRIES  10
#define RETRY_NS UINT64_C(100000000) /* before the first; doubled before each next one */

struct dp_session_trap {
	struct dp_hooks hooks;
};

struct dp_session_trap *dp_session_trap_destroy(struct dp_session_trap *trap)
{
	if (trap)
		dp_hooks_fini(&trap->hooks);
	free(trap);
	return NULL;
}

/* ---- which probes may use a trap ------------------------------------------------------------------------------------- */

/* Refused because no jump fits, or because the instruction raises a signal by design, which the handler could correct. */
static bool trap_may_help(const struct dp_place *place)
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

static bool is_asked(const struct dp_trace_spec *trace)
{
	return trace->tactics >> DP_TACTIC_TRAP & 1;
}

/*
 * Where no jump fits, a probe that the user named gets a trap without --tactic trap, if it does not outlive dynprobe: a debugger
 * or filter that comes after the run cannot meet it. Probes of a pattern of functions get none: they are not worth the risk.
 */
static bool may_trap(const struct dp_session *s, size_t i)
{
	const struct dp_trace_spec *trace = s->trace;
	if (trace->no_trap || trace->tactics)
		return !trace->no_trap && is_asked(trace);
	return !s->no_fallback && !trace->attach && !s->lttng && !trace->probe[i].many;
}

/* An instruction that raises a signal by design gets a trap only with --tactic trap. */
static bool wants_trap(const struct dp_session *s, size_t i)
{
	return trap_may_help(&s->place[i]) && may_trap(s, i) &&
	       (is_asked(s->trace) || s->place[i].refused->tag != DP_TAG_UNRELOCATABLE);
}

bool dp_session_trap_is_fallback(const struct dp_session *s)
{
	return s->trap && !is_asked(s->trace) && !s->no_fallback;
}

/* ---- which probes follow pointers ------------------------------------------------------------------------------------- */

static bool follows_pointers(const struct dp_probe *p)
{
	return dp_fields_may_fault(&p->fields) || (p->when && dp_expr_may_fail(p->when));
}

/*
 * Only for probes that do not outlive dynprobe: a debugger or filter that comes after the run cannot meet the handler. Pending
 * probes would need hooks in libraries that are not loaded yet.
 */
bool dp_session_faults_wanted(const struct dp_session *s)
{
	const struct dp_trace_spec *trace = s->trace;
	if (s->no_faults || trace->no_trap || trace->attach || trace->dry_run || trace->pending || s->lttng)
		return false;
	for (size_t i = 0; i < trace->nprobes; i++)
		if (!s->place[i].refused && (follows_pointers(&trace->probe[i]) || dp_asked_has_key(&trace->asked, DP_KEY_TEXT)))
			return true;
	return false;
}

unsigned dp_session_tactics(const struct dp_session *s, size_t i)
{
	const unsigned asked = (s->trace->tactics ? s->trace->tactics : DP_TACTICS_JUMPS) & DP_TACTICS_JUMPS;
	const unsigned now = asked | (s->trap && may_trap(s, i) ? 1u << DP_TACTIC_TRAP : 0);
	return now ? now : 1u << DP_TACTIC_COUNT; /* no tactic; 0 would mean all jumps */
}

/* ---- hooks ------------------------------------------------------------------------------------------------------------ */

struct dp_error *dp_session_trap_begin(struct dp_session *s)
{
	struct dp_session_trap *trap = calloc(1, sizeof(*trap));
	if (!trap)
		return dp_error_nomem();
	struct dp_error *err = dp_target_trap_check(s->target);
	if (!err)
		err = dp_hooks_find(dp_target_image(s->target), &trap->hooks);
	if (!err)
		err = dp_target_trap_room(s->target, trap->hooks.place, trap->hooks.n);
	if (!err)
		dp_target_faults_want(s->target, !s->no_faults);
	if (!err && s->by_calls.later)
		dp_target_faults_later(s->target);
	size_t *planned = err ? NULL
	                      : realloc(s->planned, (DP_PLANS_PER_REQUEST * (s->trace->nprobes + trap->hooks.n) + DP_OWN_SITES) *
	                                                    sizeof(*planned));
	if (!err && !planned)
		err = dp_error_nomem();
	if (err) {
		dp_session_trap_destroy(trap);
		return err;
	}
	s->planned = planned;
	s->trap = trap;
	return NULL;
}

struct dp_error *dp_session_trap_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view)
{
	const uint64_t entry = s->trace->dry_run ? DP_NOWHERE : dp_target_trap_hook(s->target);
	for (size_t i = 0; s->trap && i < s->trace->nprobes; i++)
		if (!s->place[i].refused && !s->place[i].pending)
			dp_hooks_keep(&s->trap->hooks, s->place[i].addr);
	return s->trap ? dp_hooks_plan(&s->trap->hooks, dp_target_image(s->target), planner, view, entry) : NULL;
}

/* ---- retries and messages --------------------------------------------------------------------------------------------- */

void dp_session_trap_retry(struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (trap_may_help(&s->place[i]))
			s->place[i].refused = dp_error_destroy(s->place[i].refused);
	s->unhooked = dp_error_destroy(s->unhooked);
	s->hooked = false;
	s->nplanned = 0;
}

void dp_session_trap_forget(struct dp_session *s)
{
	s->trap = dp_session_trap_destroy(s->trap);
	dp_error_destroy(dp_target_trap_room(s->target, NULL, 0));
	dp_target_faults_want(s->target, false);
	dp_session_trap_retry(s);
}

static void log_by_calls(struct dp_session *s, const char *why, const char *cause)
{
	snprintf(s->by_calls.why, sizeof(s->by_calls.why), "%s%s%s", why, cause ? ": " : "", cause ? cause : "");
	dp_trace_log(s->trace, DP_LOG_DEBUG, "memory is read by system calls: %s", s->by_calls.why);
}

void dp_session_faults_put_off(struct dp_session *s, struct dp_error *why)
{
	dp_session_trap_forget(s);
	s->by_calls.later = true;
	log_by_calls(s, why->message, NULL);
	dp_error_destroy(why);
}

/*
 * The handler would take attempts to stop all threads, an installation, and its removal, which holds all threads as well; and all
 * in vain. So nothing gets a trap unasked, and memory is read by system calls until the handler can be installed.
 */
void dp_session_trap_spare(struct dp_session *s)
{
	if (is_asked(s->trace) || !dp_target_is_crowded(s->target))
		return;
	s->no_fallback = true;
	s->by_calls.later = true;
	if (dp_session_faults_wanted(s))
		log_by_calls(s, "the process has more threads than can be stopped together within --max-pause", NULL);
}

void dp_session_faults_installed(struct dp_session *s)
{
	const char *why = dp_target_faults_why(s->target);
	if (why && !s->by_calls.why[0] && dp_session_faults_wanted(s))
		log_by_calls(s, why, NULL);
	s->by_calls.since_ns = dp_now_ns();
	s->by_calls.next_ns = s->by_calls.since_ns + RETRY_NS;
}

static void note_retry(struct dp_session *s, uint64_t held_ns, struct dp_error *err)
{
	struct dp_by_calls *b = &s->by_calls;
	if (held_ns > s->install.pause_ns)
		s->install.pause_ns = held_ns;
	if (!err && !dp_target_faults_wait(s->target))
		b->for_ns = dp_now_ns() - b->since_ns;
	if (err || b->for_ns)
		dp_trace_log(s->trace, DP_LOG_DEBUG, "memory is read by %s%s",
		             err ? "system calls until the end: " : "loads from now on", err ? err->message : "");
	dp_error_destroy(err);
}

void dp_session_faults_round(struct dp_session *s)
{
	struct dp_by_calls *b = &s->by_calls;
	uint64_t held;
	if (!b->why[0] || b->tried >= RETRIES || !dp_target_faults_wait(s->target) || dp_now_ns() < b->next_ns)
		return;
	b->next_ns = dp_now_ns() + (RETRY_NS << ++b->tried);
	struct dp_error *err = dp_target_faults_retry(s->target, &held);
	note_retry(s, held, err);
}

void dp_session_faults_refuse(struct dp_session *s, struct dp_error *why)
{
	dp_session_trap_forget(s);
	s->no_faults = true;
	log_by_calls(s, why->message, why->cause ? why->cause->message : NULL);
	dp_error_destroy(why);
}

void dp_session_trap_refuse(struct dp_session *s, const struct dp_error *why)
{
	s->trap = dp_session_trap_destroy(s->trap);
	dp_error_destroy(dp_target_trap_room(s->target, NULL, 0));
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (wants_trap(s, i)) {
			struct dp_error *one = s->place[i].refused;
			s->place[i].refused = dp_error(is_asked(s->trace) ? DP_TAG_TRAP_UNSAFE : one->tag,
			                               "%s; no trap either: %s%s%s", one->message, why->message,
			                               why->cause ? ": " : "", why->cause ? why->cause->message : "");
			dp_error_destroy(one);
		}
}

size_t dp_session_trap_candidates(const struct dp_session *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->trace->nprobes; i++)
		n += wants_trap(s, i);
	return n;
}

void dp_session_trap_note(const struct dp_session *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->trace->nprobes; i++)
		n += s->place[i].placed && s->place[i].plan.tactic == DP_TACTIC_TRAP;
	if (n && !is_asked(s->trace))
		dp_trace_log(s->trace, DP_LOG_INFO,
		             "no jump fits at %zu site%s in %d: using traps, about 2 us a hit; do not attach a debugger during "
		             "the run, or use --no-trap",
		             n, n == 1 ? "" : "s", dp_target_pid(s->target));
}

void dp_session_trap_drop_fallback(struct dp_session *s, struct dp_error *why)
{
	dp_trace_log(s->trace, DP_LOG_DEBUG, "no traps in place of jumps: %s", why->message);
	dp_error_destroy(why);
	s->no_fallback = true;
	dp_session_trap_forget(s);
}
