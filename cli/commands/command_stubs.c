/* SPDX-License-Identifier: MIT */
/* stubs: an ELF file that describes dynprobe's code in a process to debuggers. Stops and changes nothing. */
#include "cli/commands/command.h"

#include "injector/resident/stub_map.h"
#include "output/elf/elf_object.h"

#include <errno.h>
#include <string.h>

#define NAME_SIZE 600u

/* "foo+0x10 [dynprobe]": the probed instruction. */
static void name_of(struct dp_image *image, const struct dp_stub_map_stub *stub, char *ret, size_t size)
{
	struct dp_function f;
	const dp_addr site = dp_addr_of(stub->site);
	const char *what = stub->springboard ? "dynprobe jump" : "dynprobe";
	if (dp_image_function_at(image, site, &f) && *f.name)
		snprintf(ret, size, "%.500s+0x%llx [%s]", f.name, (unsigned long long)(stub->site - f.start.v), what);
	else
		snprintf(ret, size, "0x%llx [%s]", (unsigned long long)stub->site, what);
}

static struct dp_error *put_stub(struct dp_elf_object *o, struct dp_image *image, const struct dp_stub_map_stub *stub)
{
	char name[NAME_SIZE];
	struct dp_frame_rows rows;
	name_of(image, stub, name, sizeof(name));
	dp_object_symbol(o, stub->start, stub->n, name);
	DP_TRY(dp_stub_frames(stub->bytes, stub->n, stub->start, stub->pair, stub->npairs, &rows));
	dp_object_frames(o, &rows);
	dp_frame_rows_fini(&rows);
	return NULL;
}

static void put_site(struct dp_elf_object *o, const struct dp_stub_map_stub *stub)
{
	if (stub->len)
		dp_object_site(o, stub->site, stub->len);
	for (size_t i = 0; i < stub->npairs && stub->changed; i++)
		if (stub->pair[i].original > stub->site && stub->pair[i].original - stub->site < stub->changed)
			dp_object_moved(o, stub->pair[i].original, stub->pair[i].stub);
}

static struct dp_error *describe(const struct dp_stub_map *v, struct dp_elf_object *o, struct dp_buf *ret)
{
	size_t n;
	const void *agent = dp_agent_elf(&n);
	for (size_t i = 0; i < v->ncode; i++)
		dp_object_code(o, v->code[i].start, v->code[i].size);
	for (size_t i = 0; i < v->nagents; i++)
		dp_object_copy(o, agent, n, v->agent[i], "dynprobe");
	for (size_t i = 0; i < v->nstubs; i++) {
		DP_TRY(put_stub(o, v->image, &v->stub[i]));
		put_site(o, &v->stub[i]);
	}
	return dp_object_finish(o, ret);
}

static struct dp_error *write_file(const char *path, const struct dp_buf *file)
{
	if (!strcmp(path, "-"))
		return fwrite(file->data, 1, file->len, stdout) == file->len && !fflush(stdout)
		               ? NULL
		               : dp_error_sys(DP_TAG_OUTPUT, "writing the ELF file");
	dp_auto_fclose FILE *f = fopen(path, "we");
	if (!f || fwrite(file->data, 1, file->len, f) != file->len || fflush(f))
		return dp_error_sys(DP_TAG_OUTPUT, "writing %s", path);
	return NULL;
}

static struct dp_error *make(const struct dp_options *options, const struct dp_stub_map *v)
{
	struct dp_elf_object *o = NULL;
	struct dp_buf file = {0};
	if (!v->ncode)
		return v->foreign
		               ? dp_error(DP_TAG_LOCKED, "process %d has probes of another version of dynprobe; use that version",
		                          options->trace.pid[0])
		               : dp_error(DP_TAG_NO_PROBE, "no probes in process %d", options->trace.pid[0]);
	DP_TRY(dp_object_create(&o));
	struct dp_error *err = describe(v, o, &file);
	if (!err)
		err = write_file(options->output, &file);
	dp_buf_fini(&file);
	dp_object_destroy(o);
	return err;
}

int dp_command_stubs(const struct dp_options *options)
{
	struct dp_stub_map v = {0};
	struct dp_error *err = dp_stub_map_read(options->trace.pid[0], &v);
	if (!err)
		err = make(options, &v);
	if (!err && options->verbose)
		fprintf(stderr, "dynprobe: %zu stubs and jumps in %zu mappings\n", v.nstubs, v.ncode);
	dp_stub_map_fini(&v);
	dp_error_print(err, stderr);
	const int status = err ? DP_EXIT_FAILURE : 0;
	dp_error_destroy(err);
	return status;
}
