/* SPDX-License-Identifier: MIT */
/* The processes of a container, and of a user. */
#ifndef DP_CLI_PROCESSES_CONTAINERS_H
#define DP_CLI_PROCESSES_CONTAINERS_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct dp_pid_list {
	pid_t *item;
	size_t n;
};
#define DP_CONTAINER_ID 64u           /* digits */
struct dp_container_word {            /* what a container is called in the path of a control group */
	char id[DP_CONTAINER_ID + 1]; /* docker, podman, containerd, CRI-O; or "" */
	char name[256];               /* LXC, systemd-nspawn; or "" */
};

/*
 * The container that the first `n` bytes of a path component name: docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, ID,
 * lxc.payload.NAME, ... False: none.
 */
bool dp_container_parse(const char *component, size_t n, struct dp_container_word *ret);

/*
 * The processes in the control groups of a running container: by its ID or a unique prefix of it, or by its name. The list has no
 * dynprobe. DP_TAG_NO_PROCESS (naming those that run), DP_TAG_USAGE if several containers are meant. Free the items.
 */
struct dp_error *dp_container_find(const char *wanted, struct dp_pid_list *ret) DP_MUST_CHECK;
/* The processes whose effective user is `user`, a name or number. DP_TAG_NO_PROCESS, DP_TAG_USAGE. Free the items. */
struct dp_error *dp_user_find(const char *user, struct dp_pid_list *ret) DP_MUST_CHECK;

#endif
