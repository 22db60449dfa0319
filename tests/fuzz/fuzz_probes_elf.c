/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of a module. Good seeds: small stripped and unstripped programs and libraries. */
#include "probes/probes.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_module(struct dp_image *image, struct dp_module *m)
{
	char text[256];
	uint8_t code[64];
	dp_addr addr, start, end;
	const uint8_t *bytes;
	const uint64_t *pads;
	size_t n;
	bool exec;
	dp_module_build_id(m);
	dp_module_eh_frame(m, &addr, &bytes, &n);
	dp_module_landing_pads(m, &pads, &n);
	for (size_t i = 0; i < dp_module_nsegments(m) && i < 8; i++) {
		if (!dp_module_segment(m, i, &addr, &bytes, &n, &exec))
			continue;
		size_t len = sizeof(code);
		dp_error_destroy(dp_module_text(m, addr, code, &len));
		dp_module_text_bounds(m, addr, &start, &end);
		dp_image_describe(image, dp_addr_add(addr, (int64_t)(n / 2)), text, sizeof(text));
	}
}

static void resolve(struct dp_image *image, const char *text)
{
	struct dp_spec spec;
	struct dp_site site;
	struct dp_error *err = dp_spec_parse(text, &spec);
	if (!err) {
		err = dp_image_resolve(image, &spec, &site);
		dp_spec_fini(&spec);
	}
	dp_error_destroy(err);
}

/* The mapping that makes the first executable segment fit. */
static uint64_t text_offset(const uint8_t *data, size_t size)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	if (size < sizeof(e))
		return 0;
	memcpy(&e, data, sizeof(e));
	for (uint64_t i = 0; i < e.e_phnum; i++) {
		uint64_t at = e.e_phoff + i * sizeof(p);
		if (at > size || size - at < sizeof(p))
			return 0;
		memcpy(&p, data + at, sizeof(p));
		if (p.p_type == PT_LOAD && (p.p_flags & PF_X))
			return p.p_offset & ~4095ULL;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char maps[160];
	struct dp_image *image = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(maps, sizeof(maps), "10000000-10100000 r-xp %08llx 00:00 0 /proc/self/fd/%d\n",
	         (unsigned long long)text_offset(data, size), fd);
	struct dp_error *err = dp_image_create(maps, "", 0, &image);
	for (size_t i = 0; !err && i < dp_image_nmodules(image); i++)
		read_module(image, dp_image_module(image, i));
	if (!err) {
		resolve(image, "main");
		resolve(image, "nosuch");
		resolve(image, "twice+1");
		dp_image_destroy(image);
	}
	dp_error_destroy(err);
	close(fd);
	return 0;
}
