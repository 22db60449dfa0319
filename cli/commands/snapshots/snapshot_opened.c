/* SPDX-License-Identifier: MIT */
#include "cli/commands/snapshots/snapshot_opened.h"

#include "base/cleanup.h"
#include "cli/run/module_log.h"
#include "probes/debug/debug_cache.h"
#include "session/code/code_view.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_core(const char *path)
{
	struct stat st;
	Elf64_Ehdr h;
	if (stat(path, &st) || !S_ISREG(st.st_mode)) /* opening a pipe would wait for its writer */
		return false;
	dp_auto_fclose FILE *f = fopen(path, "re");
	const size_t head = offsetof(Elf64_Ehdr, e_machine);
	return f && fread(&h, head, 1, f) == 1 && !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_type == ET_CORE;
}

/* With what dynprobe snapshot --core takes if nobody asks for more. */
static struct dp_error *take(const struct dp_options *o, struct dp_module_log *log, struct dp_snapshot **ret)
{
	struct dp_snap_capture_options wanted = o->snapshot.take;
	struct dp_snap_capture *capture = NULL;
	wanted.of_core = true;
	wanted.log = dp_module_log_line;
	wanted.data = log;
	wanted.version = "dynprobe " DP_VERSION;
	DP_TRY(dp_snap_capture_create(&wanted, &capture));
	struct dp_error *err = dp_snap_capture_core(capture, o->name[0], o->name[1], ret);
	dp_snap_capture_destroy(capture);
	return err;
}

static struct dp_error *open_core(const struct dp_options *o, struct dp_snapshot **ret)
{
	struct dp_module_log log;
	dp_auto_free char *cache = dp_cache_dir();
	dp_debug_cache_dir(cache);
	dp_module_log_init(&log, o);
	struct dp_error *err = take(o, &log, ret);
	dp_module_log_fini(&log);
	return err;
}

struct dp_error *dp_snapshot_opened(const struct dp_options *options, struct dp_snapshot **ret)
{
	if (is_core(options->name[0]))
		return open_core(options, ret);
	if (options->name[1])
		return dp_error(DP_TAG_USAGE,
		                "unexpected argument '%s': one file at a time; only a core file has an executable, and %s is none",
		                options->name[1], options->name[0]);
	return dp_snapshot_read_file(options->name[0], ret);
}
