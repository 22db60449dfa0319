/* SPDX-License-Identifier: MIT */
/*
 * Explains why no session daemon answers. liblttng-ctl knows two sockets: that of root's global daemon, for root and members of
 * the tracing group, and that of the user's own daemon, in the home directory. If neither answers, it only says "no session
 * daemon".
 */
#include "output/lttng/lttng_daemon.h"
#include "base/cleanup.h"
#include "output/ctf/ctf_dir.h"
#include "output/lttng/lttng.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define GLOBAL_SOCKET "/var/run/lttng/client-lttng-sessiond"
#define HOME_SOCKET   "/.lttng/client-lttng-sessiond"

struct daemon {
	int error; /* of connect(); 0: it listens */
	pid_t pid; /* of the listener, or 0 */
};

static struct daemon look(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (strlen(path) >= sizeof(addr.sun_path))
		return (struct daemon){.error = ENAMETOOLONG};
	strcpy(addr.sun_path, path);
	dp_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return (struct daemon){.error = errno};
	/* The kernel reports the process that called listen(2), whether or not it responds. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return (struct daemon){0};
	return (struct daemon){.pid = peer.pid};
}

static struct daemon look_at_home(const char *home)
{
	dp_auto_free char *path = NULL;
	if (!home || asprintf(&path, "%s" HOME_SOCKET, home) < 0) {
		path = NULL;
		return (struct daemon){.error = ENOENT};
	}
	return look(path);
}

/* ---- no daemon ---- */

static const char *user_name(void)
{
	const struct passwd *user = getpwuid(getuid());
	return user ? user->pw_name : "you";
}

/* The user of sudo may have sessions with a daemon of their own, which root's tools do not ask. */
static const struct passwd *sudo_user_with_daemon(void)
{
	const char *uid = getenv("SUDO_UID");
	const struct passwd *user = getuid() == 0 && uid ? getpwuid((uid_t)strtoul(uid, NULL, 10)) : NULL;
	return user && user->pw_uid && !look_at_home(user->pw_dir).error ? user : NULL;
}

static struct dp_error *no_permission(void)
{
	struct stat st;
	const struct group *group = stat(GLOBAL_SOCKET, &st) ? NULL : getgrgid(st.st_gid);
	const char *name = group ? group->gr_name : "tracing", *user = user_name();
	return dp_error(DP_TAG_LTTNG,
	                "root's session daemon is running, but %s is not in its tracing group '%s', and %s has no daemon: run "
	                "usermod -aG %s %s and log in again, or start one with lttng-sessiond --daemonize",
	                user, name, user, name, user);
}

struct dp_error *dp_lttng_absent(void)
{
	const struct passwd *sudo = sudo_user_with_daemon();
	if (sudo)
		return dp_error(
		        DP_TAG_LTTNG,
		        "root has no session daemon; %s has one, but root's tools do not see its sessions: run dynprobe as "
		        "%s, or start one for root with lttng-sessiond --daemonize",
		        sudo->pw_name, sudo->pw_name);
	const struct daemon global = look(GLOBAL_SOCKET);
	if (global.error == EACCES)
		return no_permission();
	if (getuid() && !dp_home())
		return dp_error(DP_TAG_LTTNG, "cannot find a session daemon without a home directory: set HOME or LTTNG_HOME");
	/* The socket of a killed daemon remains. */
	const bool dead = (getuid() ? look_at_home(dp_home()) : global).error == ECONNREFUSED;
	return dp_error(DP_TAG_LTTNG, "no LTTng session daemon is running%s: start one with lttng-sessiond --daemonize",
	                dead ? " any more (its socket still exists)" : "");
}

struct dp_error *dp_lttng_reachable(void)
{
	struct daemon d = look(GLOBAL_SOCKET);
	if (d.error && d.error != EAGAIN && getuid())
		d = look_at_home(dp_home());
	return d.error && d.error != EAGAIN ? dp_lttng_absent() : NULL;
}

/* ---- a daemon that does not answer ---- */

static bool is_stopped(pid_t pid)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	dp_auto_fclose FILE *f = fopen(path, "re");
	const char *state = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	return state && (state[2] == 'T' || state[2] == 't');
}

struct dp_error *dp_lttng_silent(uint64_t timeout_ns)
{
	struct daemon d = look(GLOBAL_SOCKET);
	if (d.error && getuid())
		d = look_at_home(dp_home());
	const double seconds = (double)timeout_ns / 1e9;
	if (d.error || !d.pid)
		return dp_error(DP_TAG_LTTNG, "the LTTng session daemon gave no answer within %.3g s", seconds);
	if (is_stopped(d.pid))
		return dp_error(DP_TAG_LTTNG,
		                "the LTTng session daemon (pid %d) gave no answer within %.3g s: it is stopped; continue it with "
		                "kill -CONT "
		                "%d",
		                d.pid, seconds, d.pid);
	return dp_error(DP_TAG_LTTNG,
	                "the LTTng session daemon (pid %d) gave no answer within %.3g s: it is busy or waits for a relay daemon",
	                d.pid, seconds);
}
