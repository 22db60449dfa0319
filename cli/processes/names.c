/* SPDX-License-Identifier: MIT */
/*
 * The files that runtimes write about a container:
 *
 *   docker            /var/lib/docker/containers/ID/config.v2.json: "Name": "/NAME"
 *   podman            /var/lib/containers/storage/overlay-containers/containers.json: [{"id": ID, "names": [NAME, ...]}, ...]
 *   containerd        /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json: annotations
 *   CRI-O             /run/containers/storage/overlay-containers/ID/userdata/config.json: annotations
 */
#include "cli/processes/names.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define TASKS "/run/containerd/io.containerd.runtime.v2.task"

static bool is_text(const json_t *value, const char *name)
{
	const char *text = json_string_value(value);
	return text && !strcmp(text + (*text == '/'), name);
}

static bool docker_has(const char *id, const char *name)
{
	char path[160];
	snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json", id);
	json_t *config = json_load_file(path, 0, NULL);
	const bool is = is_text(json_object_get(config, "Name"), name);
	json_decref(config);
	return is;
}

static bool podman_has(const char *id, const char *name)
{
	json_t *all = json_load_file("/var/lib/containers/storage/overlay-containers/containers.json", 0, NULL), *one, *called;
	bool is = false;
	size_t i, k;
	json_array_foreach(all, i, one)
	{
		if (!is_text(json_object_get(one, "id"), id))
			continue;
		json_array_foreach(json_object_get(one, "names"), k, called) is |= is_text(called, name);
	}
	json_decref(all);
	return is;
}

static bool annotated(const char *path, const char *name)
{
	static const char *const keys[] = {"nerdctl/name", "io.kubernetes.cri.container-name", "io.kubernetes.container.name"};
	json_t *config = json_load_file(path, 0, NULL);
	const json_t *notes = json_object_get(config, "annotations");
	bool is = false;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		is |= is_text(json_object_get(notes, keys[i]), name);
	json_decref(config);
	return is;
}

static bool containerd_has(const char *id, const char *name)
{
	char path[512];
	bool is = false;
	dp_auto_closedir DIR *spaces = opendir(TASKS);
	for (const struct dirent *e; spaces && !is && (e = readdir(spaces));) {
		snprintf(path, sizeof(path), TASKS "/%s/%s/config.json", e->d_name, id);
		is = e->d_name[0] != '.' && annotated(path, name);
	}
	return is;
}

static bool crio_has(const char *id, const char *name)
{
	char path[192];
	snprintf(path, sizeof(path), "/run/containers/storage/overlay-containers/%s/userdata/config.json", id);
	return annotated(path, name);
}

bool dp_container_is_named(const char *id, const char *name)
{
	return docker_has(id, name) || podman_has(id, name) || containerd_has(id, name) || crio_has(id, name);
}
