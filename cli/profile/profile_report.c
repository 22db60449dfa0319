/* SPDX-License-Identifier: MIT */
/* What a profile says of itself at its end. */
#include "base/duration.h"
#include "cli/profile/profile_internal.h"
#include "output/format/put.h"

uint64_t dp_profile_taken(const struct profile *p)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->n; i++)
		sum += p->item[i].s.taken;
	return sum;
}

void dp_profile_stats(const struct profile *p, struct dp_samples_stats *ret)
{
	*ret = (struct dp_samples_stats){0};
	for (size_t i = 0; i < p->n; i++) {
		struct dp_samples_stats one;
		dp_sampler_stats(&p->item[i].s, &one);
		ret->lost += one.lost;
		ret->throttled += one.throttled;
		ret->foreign += one.foreign;
		ret->children += one.children;
		ret->user_only |= one.user_only;
	}
}

static void put_off_cpu(const struct profile *p, const struct dp_sampler *s)
{
	if (p->o->off_cpu)
		fprintf(p->out.file,
		        "\"off_cpu\":{\"ns\":%llu,\"preempted\":%llu,\"preempted_ns\":%llu,\"open\":%llu,\"no_stack\":%llu,"
		        "\"no_stack_ns\":%llu,\"early\":%llu,\"early_ns\":%llu,\"broken\":%llu,\"no_switch\":%zu},",
		        (unsigned long long)s->times.ns, (unsigned long long)s->times.preempted,
		        (unsigned long long)s->times.preempted_ns, (unsigned long long)s->times.open,
		        (unsigned long long)s->times.bare, (unsigned long long)s->times.bare_ns,
		        (unsigned long long)s->missed.early, (unsigned long long)s->missed.early_ns,
		        (unsigned long long)s->missed.broken, s->unseen);
}

void dp_profile_report_json(const struct profile *p, const struct dp_sampler *sampler, double seconds)
{
	struct dp_samples_stats s;
	struct dp_buf comm = {0};
	dp_put_json_str(&comm, sampler->comm);
	dp_sampler_stats(sampler, &s);
	fprintf(p->out.file,
	        "{\"type\":\"profile\",\"version\":1,\"pid\":%d,\"comm\":%s,\"hz\":%u,\"seconds\":%.3f,\"samples\":%llu,\"lost\":"
	        "%llu,"
	        "\"throttled\":%llu,\"foreign\":%llu,\"cut\":%llu,\"crowded\":%llu,\"stale\":%llu,\"unnamed\":%llu,"
	        "\"children\":%llu,\"user_only\":%s,",
	        sampler->pid, dp_buf_str(&comm), p->o->profile_hz, seconds, (unsigned long long)sampler->taken,
	        (unsigned long long)s.lost, (unsigned long long)s.throttled, (unsigned long long)s.foreign,
	        (unsigned long long)sampler->cut, (unsigned long long)sampler->crowded, (unsigned long long)sampler->stale,
	        (unsigned long long)dp_sampler_unnamed(sampler), (unsigned long long)s.children, s.user_only ? "true" : "false");
	dp_buf_fini(&comm);
	put_off_cpu(p, sampler);
	fprintf(p->out.file, "\"ended_by\":\"%s\"}\n", p->ended_by);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A line below the first. */
static void put_count(uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, "  %llu %s\n", (unsigned long long)n, what);
}

static void put_time(uint64_t n, uint64_t ns, const char *what, const char *more)
{
	char time[DP_DURATION_TEXT];
	if (n)
		fprintf(stderr, "  %s of it in %llu %s%s%s\n", dp_duration(ns, time), (unsigned long long)n, what, plural(n),
		        more);
}

static void add(struct dp_sampler *all, const struct dp_sampler *s)
{
	all->cut += s->cut;
	all->crowded += s->crowded;
	all->stale += s->stale;
	all->times.ns += s->times.ns;
	all->times.preempted += s->times.preempted;
	all->times.preempted_ns += s->times.preempted_ns;
	all->times.open += s->times.open;
	all->times.bare += s->times.bare;
	all->times.bare_ns += s->times.bare_ns;
	all->missed.early += s->missed.early;
	all->missed.early_ns += s->missed.early_ns;
	all->missed.broken += s->missed.broken;
	all->unseen += s->unseen;
}

/* What the rows do not show is said here. */
static void report_waits(const struct dp_sampler *all)
{
	char time[DP_DURATION_TEXT];
	put_time(all->times.preempted, all->times.preempted_ns, "preemption", "");
	put_time(all->times.bare, all->times.bare_ns, "wait", " without a stack (the rings were full)");
	if (all->times.open)
		fprintf(stderr, "  %llu wait%s not over at the end\n", (unsigned long long)all->times.open,
		        plural(all->times.open));
	if (all->missed.early)
		fprintf(stderr, "  not in it: %s of %llu wait%s that had begun before\n", dp_duration(all->missed.early_ns, time),
		        (unsigned long long)all->missed.early, plural(all->missed.early));
	put_count(all->missed.broken, "waits left out (a record was lost)");
	if (all->unseen)
		fprintf(stderr,
		        "  %zu thread%s waited or ran all the time and cannot be shown here (dynprobe snapshot shows all "
		        "stacks)\n",
		        all->unseen, plural(all->unseen));
}

static void report_losses(const struct profile *p, const struct dp_sampler *all, const struct dp_samples_stats *s)
{
	const bool off = p->o->off_cpu;
	put_count(s->lost, off ? "records of switches lost (the rings were full)" : "samples lost (the rings were full)");
	put_count(s->throttled, "times throttled by the kernel");
	put_count(s->foreign, "without a 64-bit context");
	put_count(all->cut, off ? "stacks cut (more than 8 KiB, a page of it that was not in memory, or more than 126 frames)"
	                        : "stacks cut (more than 32 KiB, a page of it that was not in memory, or more than 126 frames)");
	put_count(all->crowded, "not counted (too many different stacks)");
	put_count(all->stale, "of code mapped since the last look (names may be outdated)");
}

void dp_profile_report(const struct profile *p, double seconds)
{
	char time[DP_DURATION_TEXT];
	struct dp_samples_stats s;
	struct dp_sampler all = {0};
	const uint64_t taken = dp_profile_taken(p);
	uint64_t unnamed = 0;
	dp_profile_stats(p, &s);
	for (size_t i = 0; i < p->n; i++) {
		unnamed += dp_sampler_unnamed(&p->item[i].s);
		add(&all, &p->item[i].s);
	}
	fprintf(stderr, "dynprobe: %llu %s%s", (unsigned long long)taken, p->o->off_cpu ? "wait" : "sample", plural(taken));
	if (p->n > 1)
		fprintf(stderr, " of %zu processes", p->n);
	fprintf(stderr, " in %.3f s", seconds);
	if (p->o->off_cpu)
		fprintf(stderr, ", %s off the processor", dp_duration(all.times.ns, time));
	fprintf(stderr, "; %s\n", p->ended_by);
	if (p->o->off_cpu)
		report_waits(&all);
	report_losses(p, &all, &s);
	put_count(unnamed, "without names (their code was gone)");
	put_count(s.children, "child processes not sampled");
	if (s.user_only)
		fprintf(stderr, "  without time in the kernel (kernel.perf_event_paranoid)\n");
	if (!taken && !p->o->off_cpu && !p->o->flame) /* of a flame graph it is said beside it */
		fprintf(stderr, "  " DP_PROFILE_IDLE "\n");
}
