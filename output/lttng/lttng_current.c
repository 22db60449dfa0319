/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "output/ctf/ctf_dir.h"
#include "output/lttng/lttng.h"
#include "output/lttng/lttng_daemon.h"
#include "output/lttng/lttng_rules.h"
#include "output/lttng/lttng_session.h"
#include "output/lttng/lttng_talk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { CONFIG_MAX = 16 << 20 };

struct current {
	char session[LTTNG_NAME_MAX];
	char dir[32]; /* our directory, in which the daemon saves the session's rules; "" if there is none */
	const char *const *names;
	size_t n;
	bool known, covers;
};

/* Reads the whole file, NUL-terminated; NULL if it cannot be read. */
static char *read_file(const char *path)
{
	struct stat st;
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be a FIFO without a writer */
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > CONFIG_MAX)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	const ssize_t n = text ? read(fd, text, (size_t)st.st_size) : 0;
	if (text)
		text[n > 0 ? n : 0] = '\0';
	return text;
}

static bool read_rc(char *name, size_t size)
{
	dp_auto_free char *path = NULL;
	const char *home = dp_home();
	if (!home || asprintf(&path, "%s/.lttngrc", home) < 0) {
		path = NULL;
		return false;
	}
	dp_auto_free char *text = read_file(path);
	return text && dp_lttng_rc_session(text, name, size);
}

char *dp_lttng_saved(const char *session, const char *dir)
{
	dp_auto_free char *path = NULL;
	struct lttng_save_session_attr *attr = dp_lttng_ctl.save_session_attr_create();
	if (!attr || dp_lttng_ctl.save_session_attr_set_session_name(attr, session) ||
	    dp_lttng_ctl.save_session_attr_set_output_url(attr, dir) || dp_lttng_ctl.save_session(attr))
		return NULL;
	if (asprintf(&path, "%s/%s.lttng", dir, session) < 0) {
		path = NULL;
		return NULL;
	}
	return read_file(path);
}

void dp_lttng_saved_undo(const char *session, const char *dir)
{
	char file[LTTNG_NAME_MAX + 16];
	snprintf(file, sizeof(file), "%s.lttng", session);
	if (*dir)
		dp_dir_undo(dir, file);
}

/* A daemon that cannot write there (another mount namespace) gives no rules: then nothing is covered. */
static void ask_for_rules(struct current *c)
{
	dp_auto_free char *xml = dp_lttng_saved(c->session, c->dir);
	c->covers = xml && dp_lttng_config_covers(xml);
	for (size_t i = 0; i < c->n && c->covers; i++)
		c->covers = dp_lttng_config_wants(xml, c->names[i]);
}

static struct dp_error *ask(void *arg)
{
	struct current *c = arg;
	struct lttng_session *sessions = NULL;
	const int n = dp_lttng_ctl.list_sessions(&sessions);
	if (n == -LTTNG_ERR_NO_SESSIOND)
		return NULL;
	if (n < 0)
		return dp_lttng_error(n, "asking for the current session '%s'", c->session);
	for (int i = 0; i < n; i++)
		c->known |= !strcmp(sessions[i].name, c->session);
	if (c->known && *c->dir)
		ask_for_rules(c);
	return NULL;
}

struct dp_error *dp_lttng_current(char **session, const char *const *names, size_t n, bool *covers, uint64_t timeout_ns)
{
	struct current c = {.dir = "/tmp/dynprobe-XXXXXX", .names = names, .n = names ? n : 0};
	*session = NULL;
	*covers = false;
	if (!read_rc(c.session, sizeof(c.session)))
		return NULL;
	if (!mkdtemp(c.dir))
		c.dir[0] = '\0';
	struct dp_error *err = dp_lttng_talk(ask, &c, sizeof(c), timeout_ns);
	dp_lttng_saved_undo(c.session, c.dir);
	if (err || !c.known)
		return err;
	*session = strdup(c.session);
	*covers = c.covers;
	return *session ? NULL : dp_error_nomem();
}
