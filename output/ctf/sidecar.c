/* SPDX-License-Identifier: MIT */
#include "output/ctf/sidecar.h"

#include "base/cleanup.h"
#include "output/format/put.h"
#include "probes/expr/syntax/printf_form.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct dp_sidecar {
	struct dp_sidecar_of of;
	int dir, fd; /* the folder; the file of names */
	struct dp_buf lines;
	struct dp_sidecar_names *names;
};

/* ---- classes.json ---------------------------------------------------------------------------------------------------------- */

static void put_key(struct dp_buf *b, const char *before, const char *key)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

static void put_text(struct dp_buf *b, const char *key, const char *text)
{
	if (text)
		dp_put_json_member(b, ",", key, text);
}

static void put_flag(struct dp_buf *b, const char *key, bool is)
{
	if (!is)
		return;
	put_key(b, ",", key);
	dp_put_str(b, "true");
}

static void put_names(struct dp_buf *b, const struct dp_enumeration *names)
{
	if (!names)
		return;
	put_flag(b, "flags", names->flags);
	put_key(b, ",", "names");
	dp_put_str(b, "[");
	for (size_t i = 0; i < names->n; i++) {
		dp_put_str(b, i ? ",[" : "[");
		dp_put_json_str(b, names->item[i].name);
		dp_put_str(b, ",");
		dp_put_signed(b, (int64_t)names->item[i].value);
		dp_put_str(b, "]");
	}
	dp_put_str(b, "]");
}

static void put_field(struct dp_buf *b, const struct dp_field *f)
{
	dp_put_json_member(b, "{", "name", f->name);
	put_text(b, "label", f->label);
	put_key(b, ",", "type");
	dp_put_dec(b, f->type);
	put_key(b, ",", "size");
	dp_put_dec(b, f->size);
	put_key(b, ",", "display");
	dp_put_dec(b, f->display);
	put_flag(b, "hex", f->hex);
	put_flag(b, "may_fail", dp_field_may_fault(f));
	if (f->source == DP_SRC_NONE)
		put_text(b, "absent", f->absent ? f->absent : "");
	put_names(b, f->names);
	dp_put_str(b, "}");
}

static void put_call(struct dp_buf *b, const struct dp_call_at *call)
{
	if (!call)
		return;
	put_key(b, ",", "call");
	dp_put_signed(b, call->nr);
	put_flag(b, "call_exit", call->exit);
}

static void put_class(struct dp_buf *b, const struct dp_event_class *class)
{
	dp_put_json_member(b, "{", "name", class->name);
	put_text(b, "title", class->title);
	put_text(b, "spec", class->spec);
	put_text(b, "entry", class->entry);
	put_text(b, "format", class->form ? class->form->text : NULL);
	put_call(b, class->call);
	put_key(b, ",", "fields");
	dp_put_str(b, "[");
	for (size_t i = 0; i < class->fields->n; i++) {
		dp_put_str(b, i ? ",\n  " : "\n  ");
		put_field(b, &class->fields->field[i]);
	}
	dp_put_str(b, "]}");
}

static void put_classes(struct dp_buf *b, const struct dp_sidecar_of *of)
{
	char boot[37];
	dp_clock_boot(boot);
	dp_buf_printf(b, "{\"dynprobe\":%d,\"uuid\":\"", DP_SIDECAR_VERSION);
	for (size_t i = 0; i < 16; i++)
		dp_buf_printf(b, "%02x", of->uuid[i]);
	dp_put_str(b, "\",\"clock_offset_ns\":");
	dp_put_signed(b, dp_clock_offset());
	dp_put_json_member(b, ",", "boot", boot);
	put_key(b, ",", "classes");
	dp_put_str(b, "[");
	for (size_t i = 0; i < of->n; i++) {
		dp_put_str(b, i ? ",\n " : "\n ");
		put_class(b, &of->classes[i]);
	}
	dp_put_str(b, "]}\n");
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const struct dp_buf *b)
{
	for (size_t done = 0; done < b->len;) {
		const ssize_t got = write(fd, b->data + done, b->len - done);
		if (got < 0 && errno != EINTR)
			return false;
		done += got < 0 ? 0 : (size_t)got;
	}
	return true;
}

static int new_file(int dir, const char *name)
{
	return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

struct dp_error *dp_sidecar_renew(struct dp_sidecar *s)
{
	static const char next[] = ".next";
	struct dp_error *err = NULL;
	struct dp_buf text;
	dp_buf_init(&text);
	put_classes(&text, &s->of);
	dp_auto_close int fd = new_file(s->dir, next);
	if (text.failed)
		err = dp_error_nomem();
	else if (fd < 0 || !write_all(fd, &text) || renameat(s->dir, next, s->dir, DP_SIDECAR_CLASSES))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES);
	dp_buf_fini(&text);
	return err;
}

static void destroy(struct dp_sidecar *s)
{
	if (s->dir >= 0)
		close(s->dir);
	if (s->fd >= 0)
		close(s->fd);
	dp_sidecar_names_destroy(s->names);
	dp_buf_fini(&s->lines);
	free(s);
}

static struct dp_error *create_files(struct dp_sidecar *s)
{
	if (mkdirat(s->of.dir, DP_SIDECAR_DIR, 0700))
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create the trace's folder " DP_SIDECAR_DIR);
	s->dir = openat(s->of.dir, DP_SIDECAR_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s->fd = s->dir < 0 ? -1 : new_file(s->dir, DP_SIDECAR_NAMES);
	if (s->fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES);
	return dp_sidecar_renew(s);
}

void dp_sidecar_remove(int dir)
{
	unlinkat(dir, DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES, 0);
	unlinkat(dir, DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES, 0);
	unlinkat(dir, DP_SIDECAR_DIR, AT_REMOVEDIR);
}

struct dp_error *dp_sidecar_create(const struct dp_sidecar_of *of, struct dp_sidecar **ret)
{
	struct dp_sidecar *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->of = *of;
	s->dir = s->fd = -1;
	dp_buf_init(&s->lines);
	s->names = dp_sidecar_names_create(&s->lines);
	struct dp_error *err = s->names ? create_files(s) : dp_error_nomem();
	if (!err) {
		*ret = s;
		return NULL;
	}
	if (s->dir >= 0)
		dp_sidecar_remove(of->dir);
	destroy(s);
	return err;
}

void dp_sidecar_thread(struct dp_sidecar *s, const struct dp_event *e)
{
	dp_sidecar_names_thread(s->names, e);
}

void dp_sidecar_event(struct dp_sidecar *s, const struct dp_event *e)
{
	dp_sidecar_names_event(s->names, s->of.classes[e->probe].fields, e);
}

struct dp_error *dp_sidecar_flush(struct dp_sidecar *s)
{
	struct dp_error *err = NULL;
	if (s->lines.failed)
		err = dp_error_nomem();
	else if (!write_all(s->fd, &s->lines))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES);
	s->lines.len = 0;
	return err;
}

struct dp_error *dp_sidecar_close(struct dp_sidecar *s)
{
	if (!s)
		return NULL;
	if (!dp_sidecar_names_failed(s->names))
		dp_buf_printf(&s->lines, "{\"type\":\"end\"}\n");
	struct dp_error *err = dp_sidecar_flush(s);
	destroy(s);
	return err;
}
