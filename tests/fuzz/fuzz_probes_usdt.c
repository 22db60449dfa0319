/* SPDX-License-Identifier: MIT */
/* Any text as the operands of a marker, as what --usdt takes, and as a C++ name; any bytes as a .note.stapsdt of a real file. */
#include "probes/elf/demangle.h"
#include "probes/expr/scope/scope.h"
#include "probes/image/function/functions.h"
#include "probes/point/usdt/usdt.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find(const char *name, size_t len, uint64_t *addr, void *data)
{
	(void)data;
	*addr = (uint64_t)(unsigned char)*name * 4096;
	return len < 9;
}

/* Parsed operands have a value that can be computed, or a reason why not. */
static void values(const struct dp_usdt_arg *arg, size_t n)
{
	static const char *const texts[] = {"arg0", "arg1 + arg2 * 2", "str(arg3) == \"x\"", "(float)arg4 > arg5", "args"};
	const struct dp_scope_at at = {.point = DP_POINT_PLACE, .usdt = arg, .nusdt = n};
	struct dp_scope *scope = NULL;
	struct dp_error *err = dp_scope_create(NULL, &at, &scope);
	dp_error_destroy(err);
	for (size_t i = 0; scope && i < sizeof(texts) / sizeof(*texts); i++) {
		struct dp_expr *e = NULL;
		struct dp_fields fields = {0};
		dp_error_destroy(dp_scope_expr(scope, texts[i], &e));
		dp_error_destroy(dp_scope_fields(scope, texts[i], &fields));
		dp_expr_destroy(e);
		dp_fields_fini(&fields);
	}
	dp_scope_destroy(scope);
}

static void texts(const char *text)
{
	struct dp_usdt_arg arg[DP_USDT_MAX_ARGS];
	struct dp_name_match match;
	struct dp_spec spec;
	values(arg, dp_usdt_args_parse(text, find, NULL, arg));
	struct dp_error *err = dp_spec_parse_usdt(text, &spec);
	if (!err)
		dp_spec_fini(&spec);
	dp_error_destroy(err);
	free(dp_demangle(text, true));
	if (dp_name_match_init(&match, text)) {
		dp_name_match_text(&match, "ns::vector<int, std::allocator<int> >::operator<<(int const&) const");
		dp_name_match_symbol(&match, "_ZN2ns5Klass6methodEiPc");
	}
	dp_name_match_fini(&match);
}

/* The smallest file with one section of notes. */
static void notes(const uint8_t *data, size_t size)
{
	static const char names[] = "\0.note.stapsdt\0.shstrtab";
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		Elf64_Shdr s[3];
		char names[sizeof(names)];
	} f = {.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	             .e_type = ET_DYN,
	             .e_machine = EM_X86_64,
	             .e_version = EV_CURRENT,
	             .e_phoff = sizeof(f.e),
	             .e_shoff = sizeof(f.e) + sizeof(f.p),
	             .e_ehsize = sizeof(f.e),
	             .e_phentsize = sizeof(f.p),
	             .e_phnum = 1,
	             .e_shentsize = sizeof(*f.s),
	             .e_shnum = 3,
	             .e_shstrndx = 2}};
	f.p = (Elf64_Phdr){
	        .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(f), .p_memsz = sizeof(f), .p_align = 4096};
	f.s[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_NOTE, .sh_offset = sizeof(f), .sh_size = size, .sh_addralign = 4};
	f.s[2] = (Elf64_Shdr){.sh_name = 15,
	                      .sh_type = SHT_STRTAB,
	                      .sh_offset = (uint64_t)((char *)f.names - (char *)&f),
	                      .sh_size = sizeof(names),
	                      .sh_addralign = 1};
	memcpy(f.names, names, sizeof(names));
	char path[] = "/tmp/dp-fuzz-usdt-XXXXXX";
	const int fd = mkstemp(path);
	struct dp_image *image = NULL;
	const bool written = fd >= 0 && write(fd, &f, sizeof(f)) == sizeof(f) && write(fd, data, size) == (ssize_t)size;
	struct dp_error *err = written ? dp_image_from_file(path, &image) : NULL;
	const struct dp_usdt *marker;
	size_t n = 0;
	if (!err && image)
		err = dp_module_markers(dp_image_module(image, 0), &marker, &n);
	for (size_t i = 0; !err && i < n; i++) {
		struct dp_usdt_arg arg[DP_USDT_MAX_ARGS];
		dp_usdt_args(dp_image_module(image, 0), &marker[i], arg);
	}
	dp_error_destroy(err);
	dp_image_destroy(image);
	close(fd);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	if (text)
		texts(text);
	free(text);
	notes(data, size);
	return 0;
}
