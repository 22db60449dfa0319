/* SPDX-License-Identifier: MIT */
/* Which processes map a file, as /proc shows it. Stops and changes nothing. */
#ifndef DP_INJECTOR_TRACEE_PROC_MAPPERS_H
#define DP_INJECTOR_TRACEE_PROC_MAPPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_mapper_search {
	/*
	 * Modules as users name them. A name or pattern is that of every such file, in other mount namespaces, too; a path
	 * without a pattern is that one file. None: every program.
	 */
	const char *const *module;
	size_t n;
	/* Each file found, by a path that this process can open; the process `pid` may be part of it. Or NULL. */
	void (*file)(const char *path, void *data);
	void *data;
	uint64_t *digest; /* of the files that the process maps, is stored here; or NULL */
};
/*
 * DATA: it maps the file only to read it, or its loader is about to map the rest.
 * DENIED: this user may not see its mappings. A kernel thread and a zombie have none.
 */
enum dp_mapper { DP_MAPPER_NO, DP_MAPPER_YES, DP_MAPPER_DATA, DP_MAPPER_DENIED };
enum dp_mapper dp_mapper_of(pid_t pid, const struct dp_mapper_search *search);
/* Has the process memory of a dynprobe? */
bool dp_mapper_has_ours(pid_t pid);
/*
 * Is the process one that nobody means by "every process"? This tool and any other dynprobe; debuggers; who traces this tool; the
 * machine's init; and ancestors that hold a terminal's other side, because they show what this tool writes.
 */
bool dp_mapper_is_tool(pid_t pid);

#endif
