/* SPDX-License-Identifier: MIT */
#include "session/code/hooks.h"

#include "session/code/syscall_bytes.h"

#include <stdlib.h>

void dp_hooks_fini(struct dp_hooks *hooks)
{
	free(hooks->place);
	free(hooks->text);
	*hooks = (struct dp_hooks){0};
}

static struct dp_error *add(struct dp_hooks *hooks, const struct dp_hook_place *place, const struct dp_text *text)
{
	struct dp_hook_place *places = realloc(hooks->place, (hooks->n + 1) * sizeof(*places));
	if (places)
		hooks->place = places;
	struct dp_text *texts = realloc(hooks->text, (hooks->n + 1) * sizeof(*texts));
	if (texts)
		hooks->text = texts;
	if (!places || !texts)
		return dp_error_nomem();
	places[hooks->n] = *place;
	texts[hooks->n++] = *text;
	return NULL;
}

struct search {
	struct dp_hooks *hooks;
	struct dp_image *image;
	struct dp_code_view *view;
};

static struct dp_error *add_place(struct dp_module *m, uint64_t addr, void *data)
{
	const struct search *s = data;
	struct dp_site site = {.addr = dp_addr_of(addr), .module = m};
	const struct dp_text *text;
	struct dp_hook_place place;
	dp_image_function_at(s->image, site.addr, &site.function);
	DP_TRY(dp_code_view_get(s->view, &site, &text));
	struct dp_error *err = dp_hook_place(text, addr, &place);
	if (err)
		return dp_error_wrap(err, "%s", dp_module_name(m));
	return place.site ? add(s->hooks, &place, text) : NULL;
}

struct dp_error *dp_hooks_find(struct dp_image *image, struct dp_hooks *hooks)
{
	struct dp_code_view *view = NULL;
	DP_TRY(dp_code_view_create(image, &view));
	struct search search = {hooks, image, view};
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < dp_image_nmodules(image); i++) {
		struct dp_module *m = dp_image_module(image, i);
		if (dp_module_path(m)[0] == '/') /* not the vdso: it enters the kernel only to read clocks */
			err = dp_syscall_bytes(m, add_place, &search);
	}
	dp_code_view_destroy(view);
	return err;
}

struct planning {
	struct dp_hooks *hooks;
	struct dp_image *image;
	struct dp_planner *planner;
	struct dp_code_view *view;
	uint64_t entry;
};

static struct dp_error *plan_one(const struct planning *p, size_t i, uint64_t at)
{
	const struct dp_hook_place *hook = &p->hooks->place[i];
	struct dp_site site = {.addr = dp_addr_of(at), .module = dp_image_module_at(p->image, dp_addr_of(at))};
	const struct dp_text *text;
	struct dp_plan plan;
	dp_image_function_at(p->image, site.addr, &site.function);
	DP_TRY(dp_code_view_get(p->view, &site, &text));
	p->hooks->text[i] = *text;
	const bool in_front = at == hook->site && at != hook->syscall; /* hook->site has room for the whole jump */
	const struct dp_request request = {
	        .site = at,
	        .probe = DP_NO_PROBE,
	        .text = &p->hooks->text[i],
	        .hook = p->entry,
	        .syscall = hook->syscall,
	        .any_call = hook->any,
	        .tactics = in_front ? 1u << DP_TACTIC_JUMP : DP_TACTICS_JUMPS,
	};
	return dp_planner_add(p->planner, &request, &plan);
}

/* A hook makes the call itself, so that what lies between it and the end of the call does not run. */
static bool bypasses(uint64_t from, uint64_t syscall, uint64_t addr)
{
	return addr > from && addr <= syscall;
}

void dp_hooks_keep(struct dp_hooks *hooks, uint64_t addr)
{
	for (size_t i = 0; i < hooks->n; i++) {
		struct dp_hook_place *hook = &hooks->place[i];
		if (bypasses(hook->other, hook->syscall, addr))
			hook->other = 0;
		if (bypasses(hook->site, hook->syscall, addr))
			hook->site = hook->syscall;
	}
}

/* Frees `why`. */
static struct dp_error *none_fits(const struct dp_hook_place *hook, struct dp_error *why)
{
	struct dp_error *err = dp_error(DP_TAG_TRAP_UNSAFE, "no hook fits at the system call at 0x%llx: %s",
	                                (unsigned long long)hook->syscall, why->message);
	dp_error_destroy(why);
	return err;
}

struct dp_error *dp_hooks_plan(struct dp_hooks *hooks, struct dp_image *image, struct dp_planner *planner,
                               struct dp_code_view *view, uint64_t entry)
{
	const struct planning p = {hooks, image, planner, view, entry};
	for (size_t i = 0; i < hooks->n; i++) {
		const struct dp_hook_place *hook = &hooks->place[i];
		const uint64_t choice[] = {hook->site, hook->other, hook->site == hook->syscall ? 0 : hook->syscall};
		struct dp_error *err = NULL;
		for (size_t k = 0; k < sizeof(choice) / sizeof(*choice) && (!k || err); k++)
			if (choice[k]) {
				dp_error_destroy(err);
				err = plan_one(&p, i, choice[k]);
			}
		if (err)
			return none_fits(hook, err);
	}
	return NULL;
}
