/* SPDX-License-Identifier: MIT */
#include "helper_output.h"
#include "probes/image/function/generated.h"
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void must(struct dp_error *err)
{
	if (err)
		dp_error_print(err, stderr);
	cr_assert_null(err);
}

struct dp_fields make_fields(const char *const *contexts)
{
	struct dp_fields fields = {0};
	for (; *contexts; contexts++)
		must(dp_fields_add(&fields, *contexts));
	return fields;
}

void put_u64(struct dp_buf *b, uint64_t v)
{
	dp_buf_put(b, &v, sizeof(v));
}

void put_u32(struct dp_buf *b, uint32_t v)
{
	dp_buf_put(b, &v, sizeof(v));
}

void put_u8(struct dp_buf *b, uint8_t v)
{
	dp_buf_put(b, &v, sizeof(v));
}

void put_text(struct dp_buf *b, const char *s)
{
	dp_buf_put(b, s, strlen(s) + 1);
}

struct dp_event make_event(uint64_t ns, const struct dp_buf *payload)
{
	return (struct dp_event){
	        .ns = ns, .pid = 100, .tid = 101, .comm = "worker", .payload = payload->data, .len = payload->len};
}

char *make_dir(void)
{
	char *dir = strdup("/tmp/dynprobe-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	return dir;
}

void remove_tree(char *dir)
{
	int status;
	free(run(&status, "rm -rf '%s'", dir));
	free(dir);
}

char *run(int *status, const char *fmt, ...)
{
	char *command = NULL, *full = NULL, *text = NULL;
	size_t size = 0, n;
	va_list args;
	va_start(args, fmt);
	cr_assert_geq(vasprintf(&command, fmt, args), 0);
	va_end(args);
	cr_assert_geq(asprintf(&full, "(%s) 2>&1", command), 0);
	/* The commands must not run under the sanitizers that a test run preloads. */
	FILE *pipe = popen(full, "re"), *to = open_memstream(&text, &size);
	char buf[4096];
	while ((n = fread(buf, 1, sizeof(buf), pipe)) > 0)
		fwrite(buf, 1, n, to);
	fclose(to);
	*status = pclose(pipe);
	free(command);
	free(full);
	return text;
}

/* ---- the made-up image; weak, so that it is used only where probes/ is not linked ---- */

struct dp_image *const made_up_image = (struct dp_image *)&made_up_image;

static struct dp_module prog = {.name = (char *)"prog"};

__attribute__((weak)) bool dp_image_function_at(struct dp_image *image, dp_addr addr, struct dp_function *ret)
{
	static const struct dp_function functions[] = {
	        {{0x1000}, 0x10, "caller", &prog},
	        {{0x1010}, 0x20, "callee", &prog},
	        {{0x1030}, 0x10, "__restore_rt", &prog},
	};
	for (size_t i = 0; image && i < 3; i++)
		if (addr.v >= functions[i].start.v && addr.v < functions[i].start.v + functions[i].size) {
			*ret = functions[i];
			return true;
		}
	return false;
}

__attribute__((weak)) const char *dp_module_name(const struct dp_module *m)
{
	return m ? "prog" : "?";
}

__attribute__((weak)) const char *dp_function_readable(const struct dp_function *f)
{
	return f->name;
}

/* Generated code at 0x7000. */
__attribute__((weak)) bool dp_image_generated_at(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret,
                                                 const char **file)
{
	(void)image;
	*ret = (struct dp_perf_name){0x7000, 0x10, "made;up"};
	*file = "perf-1.map";
	return addr.v - 0x7000 < 0x10;
}

__attribute__((weak)) int dp_image_describe(struct dp_image *image, dp_addr addr, char *buf, size_t size)
{
	struct dp_function f;
	if (!dp_image_function_at(image, addr, &f))
		return snprintf(buf, size, "0x%lx", (unsigned long)addr.v);
	return snprintf(buf, size, "%s+0x%lx/0x%lx [%s]", f.name, (unsigned long)(addr.v - f.start.v), (unsigned long)f.size,
	                dp_module_name(f.module));
}

__attribute__((weak)) int dp_image_describe_readable(struct dp_image *image, dp_addr addr, char *buf, size_t size)
{
	return dp_image_describe(image, addr, buf, size);
}

__attribute__((weak)) const struct dp_code_name *dp_image_code_name(const struct dp_image *image, uint64_t pc, bool exact)
{
	(void)image, (void)pc, (void)exact;
	return NULL;
}

__attribute__((weak)) uint64_t dp_image_serial(const struct dp_image *image)
{
	return image ? 1 : 0;
}

__attribute__((weak)) struct dp_image *dp_image_latest(struct dp_image *image)
{
	return image;
}

__attribute__((weak)) size_t dp_image_nmodules(const struct dp_image *image)
{
	return image ? 1 : 0;
}

__attribute__((weak)) struct dp_module *dp_image_module(const struct dp_image *image, size_t i)
{
	return image && !i ? &prog : NULL;
}

__attribute__((weak)) struct dp_module *dp_image_module_at(const struct dp_image *image, dp_addr addr)
{
	(void)addr;
	return dp_image_module(image, 0);
}

__attribute__((weak)) const char *dp_module_path(const struct dp_module *m)
{
	return m ? "/no/such/prog" : "?";
}

__attribute__((weak)) const char *dp_module_build_id(struct dp_module *m)
{
	return m ? "0123" : "";
}

static const struct dp_map text = {
        .start = {0x1000}, .end = {0x2000}, .inode = 12, .read = true, .exec = true, .path = (char *)"prog"};

__attribute__((weak)) size_t dp_image_nmaps(const struct dp_image *image)
{
	return image ? 1 : 0;
}

__attribute__((weak)) const struct dp_map *dp_image_map(const struct dp_image *image, size_t i)
{
	return image && !i ? &text : NULL;
}

__attribute__((weak)) const char *dp_function_unnamed(const struct dp_function *f, char buf[static DP_UNNAMED_MAX])
{
	snprintf(buf, DP_UNNAMED_MAX, "func@0x%lx", (unsigned long)f->start.v);
	return buf;
}
