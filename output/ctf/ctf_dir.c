/* SPDX-License-Identifier: MIT */
#include "output/ctf/ctf_dir.h"
#include "base/cleanup.h"
#include "output/ctf/ctf_files.h"
#include "output/ctf/sidecar.h"
#include "output/output.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 1000 };

struct dp_error *dp_dir_create(const char *dir)
{
	dp_auto_free char *path = strdup(dir);
	if (!path)
		return dp_error_nomem();
	/*
	 * Creates the parents first. Their errors are ignored, because they may exist or be inaccessible; the last mkdir decides.
	 */
	for (char *slash = path + 1; *path && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	struct stat st;
	if (!mkdir(path, 0700) || (errno == EEXIST && !stat(path, &st) && S_ISDIR(st.st_mode)))
		return NULL;
	return dp_error_sys(DP_TAG_OUTPUT, "cannot create the directory %s", dir);
}

static struct dp_error *exists(const char *path)
{
	return dp_error(DP_TAG_OUTPUT, "%s exists: the directory already contains a trace; choose another one", path);
}

void dp_dir_unlink(const char *dir, const char *name)
{
	dp_auto_free char *path = NULL;
	if (asprintf(&path, "%s/%s", dir, name) >= 0)
		unlink(path);
	else
		path = NULL;
}

void dp_dir_undo(const char *dir, const char *name)
{
	dp_dir_unlink(dir, name);
	rmdir(dir);
}

/* ---- a trace's streams ---- */

static bool is_stream(const char *name)
{
	const size_t n = strlen(DP_CTF_STREAM_NAME);
	return !strncmp(name, DP_CTF_STREAM_NAME, n) && name[n] && name[n + strspn(name + n, "0123456789")] == '\0';
}

/* The next stream's name, or that of the metadata; NULL if there is none. */
static const char *next_of_trace(DIR *d)
{
	const struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (is_stream(entry->d_name) || !strcmp(entry->d_name, "metadata"))
			return entry->d_name;
	return NULL;
}

struct dp_error *dp_dir_without_trace(const char *dir)
{
	DIR *d = opendir(dir);
	const char *name = next_of_trace(d);
	dp_auto_free char *path = NULL;
	if (name && asprintf(&path, "%s/%s", dir, name) < 0)
		path = NULL;
	if (d)
		closedir(d);
	return name ? exists(path ? path : dir) : NULL;
}

void dp_dir_remove_trace(const char *dir)
{
	DIR *d = opendir(dir);
	dp_dir_unlink(dir, "metadata"); /* first: what is left without it is no trace */
	for (const char *name; (name = next_of_trace(d));)
		unlinkat(dirfd(d), name, 0);
	if (d) {
		dp_sidecar_remove(dirfd(d));
		closedir(d);
	}
}

/* ---- pieces of a recording ---- */

static bool is_piece(const char *name)
{
	const size_t n = strspn(name, "0123456789");
	return n >= 4 && !name[n];
}

/* A link that somebody put in the place of a directory is not followed. */
static DIR *open_at(int dir, const char *name)
{
	const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

static void remove_files(DIR *d, bool (*is_ours)(const char *name))
{
	const struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (is_ours(entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
}

static bool is_any(const char *name)
{
	return *name;
}

static bool is_of_trace(const char *name)
{
	return is_stream(name) || !strcmp(name, ".metadata");
}

void dp_dir_remove_piece(const char *dir)
{
	DIR *d = open_at(AT_FDCWD, dir);
	if (!d)
		return;
	unlinkat(dirfd(d), "metadata", 0);
	remove_files(open_at(dirfd(d), "dynprobe"), is_any);
	unlinkat(dirfd(d), "dynprobe", AT_REMOVEDIR);
	remove_files(d, is_of_trace);
	rmdir(dir);
}

/* The next piece's name, or NULL. */
static const char *next_piece(DIR *d)
{
	const struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (is_piece(entry->d_name) || !strcmp(entry->d_name, DP_PIECE_NEXT))
			return entry->d_name;
	return NULL;
}

struct dp_error *dp_dir_without_pieces(const char *dir)
{
	DP_TRY(dp_dir_without_trace(dir));
	DIR *d = opendir(dir);
	const char *name = next_piece(d);
	struct dp_error *err =
	        name ? dp_error(DP_TAG_OUTPUT, "%s/%s exists: the directory already contains a recording; choose another one",
	                        dir, name)
	             : NULL;
	if (d)
		closedir(d);
	return err;
}

void dp_dir_remove_pieces(const char *dir)
{
	DIR *d = opendir(dir);
	for (const char *name; (name = next_piece(d));) {
		dp_auto_free char *path = NULL;
		if (asprintf(&path, "%s/%s", dir, name) >= 0)
			dp_dir_remove_piece(path);
		else
			path = NULL;
	}
	if (d)
		closedir(d);
}

/* ---- the default directory ---- */

const char *dp_home(void)
{
	const char *dir = getenv("LTTNG_HOME");
	if (!dir || !*dir)
		dir = getenv("HOME");
	if (dir && *dir)
		return dir;
	const struct passwd *user = getpwuid(getuid());
	return user && user->pw_dir && *user->pw_dir ? user->pw_dir : NULL;
}

/* A program's name may contain anything: other characters than letters, digits, '.', '-' and '_' become '_'. */
char *dp_file_name(const char *name)
{
	char *copy = strndup(name, 64);
	for (char *c = copy; c && *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	return copy;
}

struct dp_error *dp_ctf_default_dir(const char *name, char **ret)
{
	const char *base = dp_home();
	if (!base)
		return dp_error(DP_TAG_OUTPUT, "no home directory for the trace: set HOME, or use --record DIR or --no-record");
	dp_auto_free char *safe = dp_file_name(name);
	char date[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	struct stat st;
	if (localtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	for (int i = 1; safe && i < ATTEMPTS; i++) {
		char suffix[16] = "", *path = NULL;
		if (i > 1)
			snprintf(suffix, sizeof(suffix), "-%d", i);
		if (asprintf(&path, "%s/lttng-traces/dynprobe-%s-%s%s", base, safe, date, suffix) < 0)
			break;
		if (lstat(path, &st)) {
			*ret = path;
			return NULL;
		}
		free(path);
	}
	return dp_error(DP_TAG_OUTPUT, "no free name for a trace of %s in %s/lttng-traces", name, base);
}
