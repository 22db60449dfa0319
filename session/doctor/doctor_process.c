/* SPDX-License-Identifier: MIT */
#include "session/doctor/findings.h"

#include "injector/injector.h"
#include "injector/perf/samples.h"
#include "injector/target/room/headroom.h"
#include "injector/tracee/proc/capabilities.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"
#include "probes/debug/debug.h"
#include "probes/image/module.h"
#include "probes/probes.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define PROFILE_HZ 99u
#define LEAST_LEFT (UINT64_C(64) << 20)
#define OURS       "/memfd:dynprobe"

/* ---- what /proc says ------------------------------------------------------------------------------------------------------- */

static void check_user(struct dp_findings *to, const char *status)
{
	char user[64], caps[256];
	const long uid = dp_status_long(status, "Uid", -1);
	dp_find(to, "user", DP_HEALTH_OK, NULL, "it runs as %s, capabilities: %s", dp_user_text(uid, user, sizeof(user)),
	        dp_capabilities_text(dp_capabilities_of(status, "CapPrm"), caps, sizeof(caps)));
}

static bool other_namespace(pid_t pid, const char *kind)
{
	char path[64], own[64];
	struct stat theirs, ours;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
	return !stat(path, &theirs) && !stat(own, &ours) && (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}

static void check_namespaces(struct dp_findings *to, const struct dp_process *p)
{
	static const char *const kinds[] = {"pid", "mnt", "user", "net"};
	struct dp_buf b = {0};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (other_namespace(p->alive, kinds[i]))
			dp_buf_printf(&b, "%s%s", b.len ? ", " : "", kinds[i]);
	if (b.len)
		dp_find(to, "namespaces", DP_HEALTH_OK, NULL,
		        "it has its own: %s (a container?); files are looked up in its root", dp_buf_str(&b));
	dp_buf_fini(&b);
}

/* Attach reads filters by stopping one thread after the other: not here. */
static void check_filter(struct dp_findings *to, const struct dp_process *p, const char *status)
{
	struct dp_process judged = *p;
	judged.seccomp = dp_filter_count(status) || dp_status_long(status, "Seccomp", 0);
	judged.seccomp_strict = dp_status_long(status, "Seccomp", 0) == 1;
	if (!judged.seccomp) {
		dp_find(to, "seccomp", DP_HEALTH_OK, NULL, "no filter");
		return;
	}
	struct dp_error *err = dp_check_seccomp(&judged, dp_filter_readable());
	if (err)
		dp_find_error(to, "seccomp", DP_HEALTH_NO, err);
	else
		dp_find(to, "seccomp", DP_HEALTH_NOTE, NULL,
		        "under a filter, which attach reads: it refuses what the filter forbids (DP-SECCOMP)");
}

static void check_memory(struct dp_findings *to, const struct dp_process *p)
{
	struct dp_headroom room;
	dp_headroom_read("", p->pid, &room);
	if (room.left == UINT64_MAX)
		return;
	dp_find(to, "memory", room.left < LEAST_LEFT ? DP_HEALTH_NOTE : DP_HEALTH_OK,
	        room.left < LEAST_LEFT ? "use --max-memory and --buffer-size, or raise the limit" : NULL,
	        "%" PRIu64 " MiB are left of %" PRIu64 " MiB (%s); the rings of events take at most half, and 64 MiB",
	        room.left >> 20, room.most >> 20, room.by);
}

static void check_profile(struct dp_findings *to, const struct dp_process *p)
{
	struct dp_samples *s = NULL;
	struct dp_error *err = dp_samples_open(p->pid, &(struct dp_samples_asked){.hz = PROFILE_HZ}, &s);
	if (err)
		dp_find_error(to, "profile", DP_HEALTH_NO, err);
	else
		dp_find(to, "profile", DP_HEALTH_OK, NULL, "--profile works");
	dp_samples_destroy(s);
}

/* ---- its program ----------------------------------------------------------------------------------------------------------- */

static bool has_loader(const struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (!strncmp(dp_module_name(dp_image_module(image, i)), "ld-", 3))
			return true;
	return false;
}

static size_t count_functions(const struct dp_symbols *symbols)
{
	size_t n = 0;
	for (size_t i = 0; i < symbols->n; i++)
		n += symbols->symbol[i].code;
	return n;
}

static void check_symbols(struct dp_findings *to, struct dp_module *m)
{
	const size_t exported = count_functions(dp_module_own_symbols(m));
	if (dp_module_own_symbols(m)->has_symtab)
		dp_find(to, "symbols", DP_HEALTH_OK, NULL, "the program has its symbol table");
	else if (dp_module_debug_symbols(m)->n)
		dp_find(to, "symbols", DP_HEALTH_OK, NULL, "the program is stripped; a debug file has its symbols");
	else
		dp_find(to, "symbols", DP_HEALTH_NOTE,
		        "install its debug symbols, or probe exported functions, main, addresses and libraries",
		        "the program is stripped: only the %zu functions that it exports have names", exported);
}

static void check_program(struct dp_findings *to, struct dp_image *image, struct dp_module *m)
{
	const char *id = dp_module_build_id(m);
	dp_find(to, "program", DP_HEALTH_OK, NULL, "%s, build ID %s", dp_module_path(m), *id ? id : "none");
	if (!has_loader(image))
		dp_find(to, "static", DP_HEALTH_NOTE, NULL,
		        "no dynamic loader: --session and --pending do not work, probes and snapshots do");
	check_symbols(to, m);
}

static void check_debug_info(struct dp_findings *to, struct dp_module *m)
{
	struct dp_debug *debug;
	struct dp_error *err = dp_module_debug(m, &debug);
	if (err)
		dp_find_error(to, "debug_info", DP_HEALTH_NOTE, err);
	else
		dp_find(to, "debug_info", DP_HEALTH_OK, NULL, "lines, variables and types: %s", debug->path);
}

/* Some programs move their text into huge pages. */
static void check_text(struct dp_findings *to, struct dp_target *t, struct dp_module *m)
{
	const struct dp_image *image = dp_target_image(t);
	struct dp_site site = {.module = m};
	for (size_t i = 0; i < dp_image_nmaps(image) && !site.addr.v; i++) {
		const struct dp_map *map = dp_image_map(image, i);
		if (map->exec && dp_image_module_at(image, map->start) == m)
			site.addr = map->start;
	}
	struct dp_error *err = site.addr.v ? dp_target_check_site(t, &site) : NULL;
	if (err)
		dp_find_error(to, "text", DP_HEALTH_NO, err);
	else
		dp_find(to, "text", DP_HEALTH_OK, NULL, "the program's text is mapped from its file");
}

static void check_ours(struct dp_findings *to, const struct dp_image *image, pid_t pid)
{
	char remedy[96];
	size_t n = 0;
	for (size_t i = 0; i < dp_image_nmaps(image); i++)
		n += !strncmp(dp_image_map(image, i)->path, OURS, strlen(OURS));
	snprintf(remedy, sizeof(remedy), "dynprobe status --pid %d lists them, dynprobe detach --pid %d removes them", pid, pid);
	if (n)
		dp_find(to, "dynprobe", DP_HEALTH_NOTE, remedy, "it has probes of an earlier dynprobe");
	else
		dp_find(to, "dynprobe", DP_HEALTH_OK, NULL, "no probes are in it");
}

static void look_inside(struct dp_findings *to, struct dp_target *t)
{
	struct dp_image *image = dp_target_image(t);
	struct dp_module *m = dp_image_nmodules(image) ? dp_image_module(image, 0) : NULL;
	check_ours(to, image, dp_target_pid(t));
	if (!m)
		return;
	check_program(to, image, m);
	check_debug_info(to, m);
	check_text(to, t, m);
}

/* ---- all ------------------------------------------------------------------------------------------------------------------- */

/* The checks of attach, in its order. Only that of filters is left out, because it stops threads. */
static struct dp_error *may_attach(pid_t pid, struct dp_process *p, struct dp_target **ret)
{
	const struct dp_target_options look = {.look = true};
	DP_TRY(dp_process_check(pid, dp_filter_readable(), p));
	return dp_target_open(pid, &look, ret);
}

bool dp_doctor_process(pid_t pid, struct dp_findings *to, char *name, size_t size)
{
	struct dp_process p;
	struct dp_target *t = NULL;
	struct dp_buf status = {0};
	snprintf(name, size, "?");
	struct dp_error *err = dp_process_inspect(pid, &p);
	if (err) {
		dp_find_error(to, "attach", DP_HEALTH_NO, err);
		return false;
	}
	snprintf(name, size, "%s", p.comm);
	err = may_attach(pid, &p, &t);
	const bool may = !err;
	if (may)
		dp_find(to, "attach", DP_HEALTH_OK, NULL, "dynprobe may attach");
	else
		dp_find_error(to, "attach", DP_HEALTH_NO, err);
	dp_proc_slurp(&status, "/proc/%d/task/%d/status", p.pid, p.alive);
	check_user(to, dp_buf_str(&status));
	check_namespaces(to, &p);
	check_filter(to, &p, dp_buf_str(&status));
	if (may)
		dp_find(to, "shadow_stack", DP_HEALTH_OK, NULL, "not in use");
	check_memory(to, &p);
	check_profile(to, &p);
	if (t)
		look_inside(to, t);
	dp_buf_fini(&status);
	dp_target_close(t);
	return may;
}
