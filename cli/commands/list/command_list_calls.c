/* SPDX-License-Identifier: MIT */
/* list 'syscall:NAME': the places that make system calls. */
#include "cli/commands/list/command_list.h"
#include "session/code/call_sites.h"
#include "output/format/put.h"
#include "probes/point/syscalls.h"

#include <fnmatch.h>
#include <string.h>

bool dp_list_is_call_glob(const char *glob)
{
	const char *bang = glob ? strrchr(glob, '!') : NULL, *word = bang ? bang + 1 : glob;
	return word && !strncmp(word, "syscall:", 8);
}

struct shown { /* one place */
	const struct dp_syscall_site *site;
	const char *name;  /* NULL: any */
	const char *where; /* module!function+0x4 */
	uint64_t bias;     /* addresses are shown so much lower */
};

static void put_text(struct dp_buf *b, const struct shown *s)
{
	dp_put_hex(b, s->site->entry - s->bias);
	dp_put_str(b, "    syscall  ");
	dp_put_visible(b, s->where, strlen(s->where), 0);
	dp_put_str(b, "  ");
	dp_put_str(b, s->name ? s->name : "(any)");
	dp_put_str(b, "\n");
}

static void put_json(struct dp_buf *b, const struct shown *s)
{
	struct dp_module *m = s->site->function.module;
	dp_put_str(b, "{\"type\":\"call\",\"version\":1");
	dp_put_json_member(b, ",", "module", dp_module_name(m));
	dp_put_json_member(b, ",", "path", dp_module_path(m));
	dp_put_json_member(b, ",", "name", s->name);
	dp_put_json_member(b, ",", "spec", s->where);
	dp_put_json_hex(b, "addr", s->site->entry - s->bias);
	dp_put_json_hex(b, "exit", s->site->exit - s->bias);
	dp_put_json_hex(b, "file_addr", s->site->entry - (uint64_t)dp_module_bias(m));
	dp_put_str(b, "}\n");
}

static struct dp_error *show(struct dp_image *image, struct shown *s, bool json)
{
	struct dp_buf b;
	struct dp_spec spec;
	DP_TRY(dp_image_spec_of(image, &s->site->function, s->site->entry - s->site->function.start.v, &spec));
	s->where = spec.text;
	dp_buf_init(&b);
	if (json)
		put_json(&b, s);
	else
		put_text(&b, s);
	fwrite(dp_buf_str(&b), 1, b.len, stdout);
	dp_buf_fini(&b);
	dp_spec_fini(&spec);
	return NULL;
}

struct dp_error *dp_list_calls(const struct dp_verdicts *v, const char *glob, bool json, size_t *n)
{
	struct dp_spec spec;
	struct dp_call_sites sites = {0};
	DP_TRY(dp_spec_parse_call(glob, &spec));
	struct dp_error *err = dp_call_sites_find(NULL, v->image, v->view, &spec, &sites);
	for (size_t i = 0; !err && i < sites.n; i++) {
		char number[32];
		const int32_t nr = sites.item[i].nr;
		struct shown s = {.site = &sites.item[i], .bias = v->shown_bias};
		s.name = nr == DP_CALL_ANY ? NULL : dp_call_format((uint64_t)nr, number, sizeof(number));
		if (s.name && fnmatch(spec.call, s.name, 0) != 0)
			continue;
		++*n;
		err = show(v->image, &s, json);
	}
	dp_call_sites_fini(&sites);
	dp_spec_fini(&spec);
	return err;
}
