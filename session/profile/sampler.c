/* SPDX-License-Identifier: MIT */
#include "session/profile/sampler_internal.h"

#include "base/cleanup.h"
#include "injector/tracee/tracee.h"
#include "probes/image/function/generated.h"
#include "session/code/code_view.h"

#include <poll.h>
#include <string.h>

#define RETRIES 3
#define LOOK_NS UINT64_C(20000000)

bool dp_sampler_has_all(const struct dp_sampler *s)
{
	return s->most && s->taken >= s->most;
}

/* Reads the mapped code, valid from `since` on. */
static void add_image(struct dp_sampler *s, struct dp_mapped m)
{
	dp_images_add(&s->images, m, s->stacks);
	dp_sample_walker_tables(s->walker, NULL);
	s->walked = DP_IMAGES_NONE;
}

static struct dp_error *look(struct dp_sampler *s, uint64_t since)
{
	struct dp_mapped m = {.since_ns = since};
	dp_auto_free char *cache = dp_cache_dir();
	const uint64_t ns = dp_now_ns(); /* before the maps are read */
	DP_TRY(dp_samples_image(s->pid, cache, &m.image, &m.unwind));
	add_image(s, m);
	dp_samples_inspected(s->samples, ns);
	return NULL;
}

static bool has_ended(const struct dp_sampler *s, int ms)
{
	struct pollfd fd = {.fd = s->pid_fd, .events = POLLIN};
	return poll(&fd, 1, ms) > 0;
}

/* The program ended before its maps were read: its samples must not get names of the program before exec. */
static void forget_before(struct dp_sampler *s, uint64_t exec_ns)
{
	struct dp_mapped nothing = {.since_ns = exec_ns};
	struct dp_error *err = dp_image_create("", "", 0, &nothing.image);
	if (!err)
		add_image(s, nothing);
	dp_error_destroy(err);
	dp_samples_inspected(s->samples, dp_now_ns());
}

/*
 * Reads the maps when code was mapped, before the samples that follow. Code without a file has no names: for it the maps are read
 * at most once in LOOK_NS, because some programs map such code all the time.
 */
static void keep_up(struct dp_sampler *s)
{
	struct dp_samples_news news;
	dp_samples_news(s->samples, &news);
	const bool names = news.file_ns || news.exec_ns;
	const uint64_t now = names || news.other_ns ? dp_now_ns() : 0;
	if (!now || (now - s->tried_ns < LOOK_NS && (!names || s->look_failed)))
		return;
	const uint64_t since = news.exec_ns ? news.exec_ns : news.file_ns ? news.file_ns : news.other_ns;
	struct dp_error *err = look(s, since);
	s->look_failed = err;
	s->tried_ns = dp_now_ns();
	if (err && news.exec_ns && has_ended(s, 0))
		forget_before(s, news.exec_ns);
	dp_error_destroy(err);
}

/* Whether the names for the sample may be older than its code. */
static bool is_stale(const struct dp_sampler *s, const struct dp_sample *sample)
{
	struct dp_samples_news news;
	dp_samples_news(s->samples, &news);
	return (news.file_ns && sample->ns >= news.file_ns) || (news.exec_ns && sample->ns >= news.exec_ns);
}

static size_t walk(struct dp_sampler *s, const struct dp_sample *sample, uint64_t pc[DP_BACKTRACE_MAX], uint32_t *number)
{
	const struct dp_mapped *m = dp_images_at(&s->images, sample->ns, number);
	if (s->walked != *number)
		dp_sample_walker_tables(s->walker, m->unwind);
	s->walked = *number;
	s->nameless += !dp_image_nmaps(m->image);
	s->stale += is_stale(s, sample);
	return dp_sample_walk(s->walker, sample, pc, DP_BACKTRACE_MAX);
}

/* Names of generated code are read while it runs: later its memory may hold other code, or the process may have ended. */
static void read_names(const struct dp_sampler *s, const uint64_t *pc, size_t n, uint32_t number)
{
	struct dp_perf_name name;
	const char *file;
	for (size_t i = 0; i < n; i++)
		dp_image_generated_at(dp_images_get(&s->images, number), dp_addr_of(dp_frame_pc(pc[i]) - (i != 0)), &name, &file);
}

size_t dp_sampler_frames(struct dp_sampler *s, const struct dp_sample *sample, uint64_t pc[DP_BACKTRACE_MAX], uint32_t *number)
{
	keep_up(s);
	size_t n = walk(s, sample, pc, number);
	read_names(s, pc, n, *number);
	if (n == DP_BACKTRACE_MAX || dp_sample_left()) {
		s->cut++;
		pc[n < DP_BACKTRACE_MAX ? n++ : n - 1] = 0; /* marks the cut: DP_FRAMES_CUT */
	}
	return n;
}

static void on_sample(const struct dp_sample *sample, void *data)
{
	struct dp_sampler *s = data;
	uint64_t pc[DP_BACKTRACE_MAX];
	uint8_t payload[1 + sizeof(pc)];
	uint32_t number;
	if (dp_sampler_has_all(s))
		return;
	const size_t n = dp_sampler_frames(s, sample, pc, &number);
	s->taken++;
	if (s->stacks) {
		s->crowded += !dp_stacks_count(s->stacks, &(struct dp_stack_seen){.pc = pc, .n = n, .image = number});
		return;
	}
	payload[0] = (uint8_t)n;
	memcpy(payload + 1, pc, n * sizeof(*pc));
	const struct dp_event event = {
	        .ns = sample->ns,
	        .pid = s->pid,
	        .tid = sample->tid,
	        .lane = (uint64_t)sample->tid,
	        .comm = dp_thread_name(&s->threads, s->pid, sample->tid, sample->ns, s->comm),
	        .process = s->comm,
	        .payload = payload,
	        .len = 1 + n * sizeof(*pc),
	        .image = dp_images_get(&s->images, number),
	};
	s->event(&event, s->data);
}

struct dp_error *dp_sampler_look(struct dp_sampler *s)
{
	for (int tried = 1;; tried++) { /* again, if the program maps meanwhile */
		struct dp_error *err = look(s, 0);
		if (err && s->starts && has_ended(s, 200)) /* it has ended already: its samples have no names */
			err = dp_error_destroy(err);
		if (!err || tried == RETRIES)
			return err;
		dp_error_destroy(err);
	}
}

struct dp_error *dp_sampler_open(struct dp_sampler *s, unsigned hz)
{
	DP_TRY(dp_sample_walker_create(s->pid, &s->walker));
	if (s->off_cpu)
		DP_TRY(dp_sampler_open_waits(s));
	else
		DP_TRY(dp_samples_open(s->pid, &(struct dp_samples_asked){.hz = hz, .on_exec = s->starts}, &s->samples));
	DP_TRY(dp_images_init(&s->images));
	dp_samples_comm(s->pid, s->comm, sizeof(s->comm));
	return NULL;
}

struct dp_error *dp_sampler_start(struct dp_sampler *s)
{
	if (s->starts)
		return NULL;
	if (s->off_cpu) {
		dp_waits_begin(s->waits, dp_now_ns());
		DP_TRY(dp_samples_start(s->switches));
	}
	return dp_samples_start(s->samples);
}

void dp_sampler_stop(struct dp_sampler *s)
{
	s->end_ns = dp_now_ns();
	dp_samples_stop(s->samples);
	if (s->off_cpu)
		dp_samples_stop(s->switches);
}

void dp_sampler_drain(struct dp_sampler *s)
{
	if (s->off_cpu)
		dp_sampler_drain_waits(s);
	else
		dp_samples_drain(s->samples, on_sample, s);
}

void dp_sampler_end(struct dp_sampler *s)
{
	if (s->off_cpu)
		dp_sampler_end_waits(s);
	else
		dp_sampler_drain(s);
}

/* A lost sample is a wait without a stack, and told as such: lost are switches. */
void dp_sampler_stats(const struct dp_sampler *s, struct dp_samples_stats *ret)
{
	struct dp_samples_stats switches;
	dp_samples_stats(s->samples, ret);
	if (!s->off_cpu)
		return;
	dp_samples_stats(s->switches, &switches);
	ret->lost = switches.lost;
}

uint64_t dp_sampler_unnamed(const struct dp_sampler *s)
{
	return s->nameless + (s->stacks ? dp_stacks_unnamed(s->stacks) : 0);
}

void dp_sampler_fini(struct dp_sampler *s)
{
	dp_stacks_destroy(s->stacks);
	dp_samples_destroy(s->samples);
	dp_samples_destroy(s->switches);
	dp_waits_destroy(s->waits);
	dp_sample_walker_destroy(s->walker);
	dp_images_fini(&s->images);
	dp_thread_names_fini(&s->threads);
}
