/* SPDX-License-Identifier: MIT */
/*
 * Groups are found as in resident_find.c, by the memfd's name and the control page's magic word. But invalid data is skipped
 * instead of refused, and a running tool does not prevent reading: a debugger wants what is there now.
 */
#include "injector/resident/stub_map.h"

#include "injector/resident/resident.h"
#include "injector/tracee/proc/inspect.h"
#include "trampoline/code/disassemble.h"

#include <stdlib.h>
#include <string.h>

#define OUR_PATH "/memfd:" DP_MEMFD_NAME " (deleted)"
#define STUB_MAX (64u << 10)

extern const uint8_t dp_agent_blob[], dp_agent_blob_end[];

struct reader {
	struct dp_process p;
	struct dp_stub_map v;
	uint64_t inode; /* of the current group, whose code begins at v.code[first] */
	size_t first;
};

/* Appends a zeroed item to the `n` items; NULL without memory. */
static void *append(void **list, size_t *n, size_t size)
{
	void *grown = realloc(*list, (*n + 1) * size);
	if (!grown)
		return NULL;
	*list = grown;
	return memset((char *)grown + (*n)++ * size, 0, size);
}

static bool in_code(const struct reader *r, uint64_t start, uint64_t n)
{
	for (size_t i = r->first; i < r->v.ncode; i++)
		if (start >= r->v.code[i].start && start - r->v.code[i].start + n <= r->v.code[i].size)
			return true;
	return false;
}

/* ---- stubs ------------------------------------------------------------------------------------------------------------- */

static struct dp_error *add_stub(struct reader *r, const struct dp_site_entry *e, uint64_t start, size_t n, bool springboard)
{
	uint8_t *bytes = malloc(n);
	struct dp_stub_map_stub *stub = bytes ? append((void **)&r->v.stub, &r->v.nstubs, sizeof(*stub)) : NULL;
	if (!stub) {
		free(bytes);
		return dp_error_nomem();
	}
	*stub = (struct dp_stub_map_stub){
	        .site = e->addr, .start = start, .bytes = bytes, .npairs = e->npairs, .springboard = springboard};
	stub->n = dp_mem_read(&r->p, dp_addr_of(start), bytes, n);
	if (!springboard && e->state != DP_SITE_RESTORED && e->state != DP_SITE_RETIRED && e->len <= sizeof(e->new_bytes)) {
		stub->len = e->len;
		stub->changed = e->changed;
	}
	for (size_t i = 0; i < e->npairs; i++)
		stub->pair[i] = (struct dp_pc_pair){e->pair[i].stub, e->pair[i].original, e->pair[i].fix_rcx};
	return NULL;
}

/* A pair outside of the stub is a jump that leads to it. */
static struct dp_error *add_springboard(struct reader *r, const struct dp_site_entry *e, uint64_t at)
{
	uint8_t bytes[16];
	char text[64];
	if (!in_code(r, at, sizeof(bytes)) || dp_mem_read(&r->p, dp_addr_of(at), bytes, sizeof(bytes)) != sizeof(bytes))
		return NULL;
	const size_t n = dp_disassemble(bytes, sizeof(bytes), at, text, sizeof(text));
	return n && !strncmp(text, "jmp", 3) ? add_stub(r, e, at, n, true) : NULL;
}

static struct dp_error *add_site(struct reader *r, const struct dp_site_entry *e)
{
	if (e->npairs > DP_SITE_PAIRS || e->stub_end <= e->stub || e->stub_end - e->stub > STUB_MAX ||
	    !in_code(r, e->stub, e->stub_end - e->stub))
		return NULL;
	DP_TRY(add_stub(r, e, e->stub, e->stub_end - e->stub, false));
	for (size_t i = 0; i < e->npairs; i++)
		if (e->pair[i].stub - e->stub >= e->stub_end - e->stub)
			DP_TRY(add_springboard(r, e, e->pair[i].stub));
	return NULL;
}

static struct dp_error *add_sites(struct reader *r, uint64_t data, const struct dp_control *c)
{
	struct dp_error *err = NULL;
	for (size_t i = 0; i < c->nsites && !err; i++) {
		struct dp_site_entry e;
		if (dp_mem_read(&r->p, dp_addr_of(data + c->sites_offset + i * sizeof(e)), &e, sizeof(e)) == sizeof(e))
			err = add_site(r, &e);
	}
	return err;
}

/* ---- groups ------------------------------------------------------------------------------------------------------------ */

/* Compares only the first bytes: later on there are words that tools fill in. */
static struct dp_error *add_agent(struct reader *r, const struct dp_agent_image *agent, uint64_t at)
{
	uint8_t there[512];
	if (agent->size < sizeof(there) || dp_mem_read(&r->p, dp_addr_of(at), there, sizeof(there)) != sizeof(there) ||
	    memcmp(there, agent->bytes, sizeof(there)) != 0)
		return NULL;
	uint64_t *added = append((void **)&r->v.agent, &r->v.nagents, sizeof(*added));
	if (!added)
		return dp_error_nomem();
	*added = at;
	return NULL;
}

static struct dp_error *add_code(struct reader *r, const struct dp_agent_image *agent)
{
	r->first = r->v.ncode;
	for (size_t i = 0; i < dp_image_nmaps(r->v.image); i++) {
		const struct dp_map *m = dp_image_map(r->v.image, i);
		if (!m->exec || m->inode != r->inode || strcmp(m->path, OUR_PATH) != 0)
			continue;
		struct dp_range *code = append((void **)&r->v.code, &r->v.ncode, sizeof(*code));
		if (!code)
			return dp_error_nomem();
		*code = (struct dp_range){m->start.v, m->end.v - m->start.v};
		DP_TRY(add_agent(r, agent, m->start.v));
	}
	return NULL;
}

static struct dp_error *add_group(struct reader *r, const struct dp_map *m, const struct dp_agent_image *agent)
{
	struct dp_control c;
	if (!m->write || strcmp(m->path, OUR_PATH) != 0 || dp_mem_read(&r->p, m->start, &c, sizeof(c)) != sizeof(c) ||
	    c.magic != DP_MAGIC)
		return NULL;
	if (c.abi != DP_ABI_VERSION || !dp_control_valid(&c, m->end.v - m->start.v)) {
		r->v.foreign++;
		return NULL;
	}
	r->inode = m->inode;
	DP_TRY(add_code(r, agent));
	return r->v.ncode > r->first ? add_sites(r, m->start.v, &c) : NULL; /* else it is a tool's view of its target */
}

static struct dp_error *read_all(struct reader *r, pid_t pid)
{
	char *maps = NULL, root[32];
	struct dp_agent_image agent;
	DP_TRY(dp_agent_image_load(&agent));
	DP_TRY(dp_process_inspect(pid, &r->p));
	DP_TRY(dp_process_maps(&r->p, &maps));
	snprintf(root, sizeof(root), "/proc/%d/root", r->p.alive);
	struct dp_error *err = dp_image_create(maps, root, r->p.alive, &r->v.image);
	free(maps);
	for (size_t i = 0; !err && i < dp_image_nmaps(r->v.image); i++)
		err = add_group(r, dp_image_map(r->v.image, i), &agent);
	return err;
}

struct dp_error *dp_stub_map_read(pid_t pid, struct dp_stub_map *ret)
{
	struct reader r = {0};
	struct dp_error *err = read_all(&r, pid);
	if (err)
		dp_stub_map_fini(&r.v);
	*ret = r.v;
	return err;
}

void dp_stub_map_fini(struct dp_stub_map *v)
{
	for (size_t i = 0; i < v->nstubs; i++)
		free(v->stub[i].bytes);
	free(v->stub);
	free(v->code);
	free(v->agent);
	dp_image_destroy(v->image);
	*v = (struct dp_stub_map){0};
}

const void *dp_agent_elf(size_t *n)
{
	*n = (size_t)(dp_agent_blob_end - dp_agent_blob);
	return dp_agent_blob;
}
