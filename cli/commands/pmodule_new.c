/* SPDX-License-Identifier: MIT */
#include "cli/commands/pmodule_new.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Each %s is the module's name. */
static const char lua[] =
        "-- %s: a pmodule of dynprobe. Try it: dynprobe snapshot PID --module-load %s.lua\n"
        "\n"
        "-- Every variable that matches; `bt` is the typed value behind it (or nil): bt.member, bt[0], pmodule.deref(bt).\n"
        "local function variable(var, bt)\n"
        "\tvar:annotate(pmodule.annotation.comment, \"%%s is at 0x%%x\", var:name() or \"?\", var:address())\n"
        "end\n"
        "\n"
        "-- The process runs again; the snapshot is complete.\n"
        "local function postattach(backtrace)\n"
        "\tlocal n = 0\n"
        "\tfor thread in backtrace do\n"
        "\t\tn = n + 1\n"
        "\tend\n"
        "\tbacktrace:add_kv_int(\"%s.threads\", n)\n"
        "end\n"
        "\n"
        "local function load()\n"
        "\tlocal match = pmodule.match()\n"
        "\tmatch:set_fault() -- variables of the frame that faulted; also: add_variable_base_type(\"my_struct\"), ...\n"
        "\tpmodule.register(pmodule.event.variable, variable, match)\n"
        "\tpmodule.register(pmodule.event.postattach, postattach)\n"
        "end\n"
        "\n"
        "pmodule.define{id = \"%s\", load = load}\n";

static const char c[] = "/* %s: a pmodule of dynprobe.\n"
                        " * cc -Wall -fPIC -shared $(pkg-config --cflags dynprobe-pmodule) %s.c -o %s.so\n"
                        " * dynprobe snapshot PID --module-load ./%s.so */\n"
                        "#include <dynprobe/pmodule.h>\n"
                        "\n"
                        "/* Every variable that matches; `bt` is the typed value behind it, or NULL. */\n"
                        "static void variable(ptrace_variable_t *var, bt_variable_t *bt)\n"
                        "{\n"
                        "\tconst char *name = pmodule_variable_name(var);\n"
                        "\tpmodule_variable_annotate(var, PAT_COMMENT, \"%%s has %%llu bytes\", name ? name : \"?\",\n"
                        "\t                          (unsigned long long)bt_variable_sizeof(bt));\n"
                        "}\n"
                        "\n"
                        "/* The process runs again; the snapshot is complete. */\n"
                        "static void postattach(ptrace_backtrace_t *backtrace)\n"
                        "{\n"
                        "\tint64_t n = 0;\n"
                        "\tfor (ptrace_thread_t *t = NULL; (t = pmodule_backtrace_next_thread(backtrace, NULL, t));)\n"
                        "\t\tn++;\n"
                        "\tpmodule_backtrace_add_kv_int(backtrace, \"%s.threads\", n);\n"
                        "}\n"
                        "\n"
                        "static bool load(pmodule_t *module)\n"
                        "{\n"
                        "\tpmodule_match_t *match = pmodule_match_create();\n"
                        "\tpmodule_match_set_fault(match, false); /* of the frame that faulted; also: "
                        "pmodule_match_add_variable_base_type(...) */\n"
                        "\tconst bool ok = pmodule_variable_event_add(module, match, variable) &&\n"
                        "\t                pmodule_postattach_event_add(module, postattach);\n"
                        "\tpmodule_match_destroy(match);\n"
                        "\treturn ok;\n"
                        "}\n"
                        "\n"
                        "PMODULE_DEFINE(\"%s\", load, NULL, NULL);\n";

static bool is_name(const char *name)
{
	const size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
			return false;
	return n && n <= 64 && *name != '.' && *name != '-';
}

static void fill(FILE *to, const char *text, const char *name)
{
	for (; *text; text++) {
		if (*text != '%')
			putc(*text, to);
		else if (*++text == 's')
			fputs(name, to);
		else
			putc(*text, to);
	}
}

struct dp_error *dp_pmodule_new(const char *name, const char *language, const char *path)
{
	const bool is_c = !strcmp(language, "c");
	char own[80];
	if (!is_name(name))
		return dp_error(DP_TAG_USAGE, "invalid module name '%s': use letters, digits, '_', '-' and '.'", name);
	if (!is_c && strcmp(language, "lua"))
		return dp_error(DP_TAG_USAGE, "unknown language '%s': use lua or c", language);
	snprintf(own, sizeof(own), "%s.%s", name, is_c ? "c" : "lua");
	path = path ? path : own;
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return dp_error(DP_TAG_OUTPUT, "%s exists; give another name or remove it", path);
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write %s", path);
	FILE *to = fdopen(fd, "w");
	if (!to) {
		close(fd);
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write %s", path);
	}
	fill(to, is_c ? c : lua, name);
	if (fclose(to))
		return dp_error_sys(DP_TAG_OUTPUT, "writing %s", path);
	puts(path);
	return NULL;
}
