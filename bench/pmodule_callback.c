/* SPDX-License-Identifier: MIT */
/*
 * The cost of a callback for each variable: 200,000 variables of a hand-made snapshot, and Lua modules that do nothing, read or
 * compare. Prints one line per module: nanoseconds per variable, with the host's own share.
 */
#include "pmodules/load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLES = 200000, ROUNDS = 5 };

static const struct {
	const char *what, *body;
} modules[] = {
        {"an empty function", ""},
        {"name() and value()", "local n, x = v:name(), v:value()"},
        {"a comparison, and a field of a table", "if v:base_type() == 'crash' then n = n + 1 end t[1] = v"},
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct dp_snapshot *make(void)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_thread *t = s ? dp_snapshot_thread(s, 1) : NULL;
	struct dp_snap_frame *f = t ? dp_snapshot_frame(s, t) : NULL;
	for (int i = 0; f && i < VARIABLES; i++) {
		struct dp_snap_variable *v = dp_snapshot_variable(s, &f->variables, NULL);
		if (!v)
			exit(1);
		v->name = v->type = v->base_type = "counter";
		v->kind = DP_VAR_LL;
		v->number = (uint64_t)i;
		v->frame = f;
		v->thread = t;
	}
	return s;
}

static struct dp_host *load(const char *body)
{
	char path[] = "/tmp/dynprobe-bench-XXXXXX.lua";
	struct dp_host *h;
	struct dp_error *err = dp_host_create(&(struct dp_host_options){.budget_ns = UINT64_C(60000000000)}, &h);
	FILE *f = err ? NULL : fdopen(mkstemps(path, 4), "w");
	if (!f)
		exit(1);
	fprintf(f,
	        "local n, t = 0, {} pmodule.define{id='bench', load=function() pmodule.register(pmodule.event.variable,\n"
	        "function(v, raw) %s end) end}",
	        body);
	fclose(f);
	err = dp_host_load(h, path);
	unlink(path);
	if (err)
		dp_error_print(err, stderr);
	return err ? exit(1), NULL : h;
}

int main(void)
{
	struct dp_snapshot *s = make();
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		struct dp_host *h = load(modules[i].body);
		double best = 1e18;
		for (int round = 0; round < ROUNDS; round++) {
			dp_host_begin(h, s);
			double begin = now();
			dp_host_thread(h, s->threads);
			double took = (now() - begin) / VARIABLES;
			best = took < best ? took : best;
			dp_host_end(h);
		}
		printf("%-40s %6.0f ns\n", modules[i].what, best);
		dp_host_destroy(h);
	}
	dp_snapshot_destroy(s);
	return 0;
}
