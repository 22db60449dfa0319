/* SPDX-License-Identifier: MIT */
/* Names of containers, which only their runtimes know. */
#ifndef DP_CLI_PROCESSES_NAMES_H
#define DP_CLI_PROCESSES_NAMES_H

#include <stdbool.h>

/*
 * Has the container with this ID that name? Reads what docker, podman, containerd (nerdctl, kubernetes) and CRI-O wrote about it,
 * which takes root. A name of kubernetes is that of the container in its pod, and several may have it.
 */
bool dp_container_is_named(const char *id, const char *name);

#endif
