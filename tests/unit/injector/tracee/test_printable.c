/* SPDX-License-Identifier: MIT */
/* The target's name, and what it writes to the sink's memory, are shown on a terminal without control characters. */
#include "helper_probe.h"

#include "agent/sink.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EVIL "\033[2Ja\nb\x7f\t"
#define TAME "?[2Ja?b??"

static void named(void)
{
	prctl(PR_SET_NAME, EVIL);
	tr->ready = 1;
	for (;;)
		pause();
}

Test(printable, name_of_a_process)
{
	pid_t pid = tr_spawn(named);
	struct dp_process p = tr_process(pid);
	cr_assert_str_eq(p.comm, TAME);
	tr_kill(pid);
}

Test(printable, name_that_ends_in_a_newline_or_is_empty)
{
	char comm[64], self[16];
	prctl(PR_GET_NAME, self);
	prctl(PR_SET_NAME, "end\n");
	dp_proc_comm(getpid(), comm, sizeof(comm));
	cr_assert_str_eq(comm, "end?");
	prctl(PR_SET_NAME, "");
	dp_proc_comm(getpid(), comm, sizeof(comm));
	cr_assert_str_eq(comm, "");
	prctl(PR_SET_NAME, "gr\303\266\303\237e");
	dp_proc_comm(getpid(), comm, sizeof(comm));
	cr_assert_str_eq(comm, "gr\303\266\303\237e", "only control characters are replaced");
	prctl(PR_SET_NAME, self);
}

Test(printable, name_of_a_launched_command)
{
	char dir[] = "/tmp/dp-printable-XXXXXX", link[64];
	struct dp_target *t;
	cr_assert_not_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/" EVIL, dir);
	cr_assert_eq(symlink("/bin/true", link), 0);
	tr_ok(dp_target_launch((char *[]){link, NULL}, PR_GATES, &t));
	cr_expect_str_eq(dp_target_comm(t), TAME);
	dp_target_close(t);
	unlink(link);
	rmdir(dir);
}

/* ---- the sink's memory -------------------------------------------------------------------------------------------------- */

#define REGION 65536u
#define EVENTS 8192u
#define FIELDS 32768u

/* Without a NUL: the reader must end it. */
static void evil_text(char text[DP_SINK_ERROR])
{
	memset(text, '\033', DP_SINK_ERROR);
	memcpy(text, EVIL, sizeof(EVIL) - 1);
}

/* A process that claims to have a sink, and whose thread answers. */
static struct dp_sink *pretend(uint32_t state)
{
	int fd = memfd_create(DP_MEMFD_NAME, MFD_CLOEXEC);
	if (ftruncate(fd, REGION))
		_exit(1);
	struct dp_sink *sink = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	*sink = (struct dp_sink){.magic = DP_SINK_MAGIC,
	                         .abi = DP_SINK_ABI,
	                         .state = state,
	                         .size = REGION,
	                         .events_offset = EVENTS,
	                         .fields_offset = FIELDS,
	                         .max_events = 4,
	                         .max_fields = 4,
	                         .owner_pid = (uint64_t)getpid(),
	                         .owner_start = dp_process_start_time(getpid())};
	sink->work = (uint64_t)(uintptr_t)&sink->reserved[0];
	evil_text(sink->error);
	return sink;
}

static void failed_sink(void)
{
	pretend(DP_SINK_FAILED);
	tr->ready = 1;
	for (;;)
		pause();
}

static void refusing_sink(void)
{
	struct dp_sink *sink = pretend(DP_SINK_READY);
	struct dp_sink_event *event = (void *)((uint8_t *)sink + EVENTS);
	tr->ready = 1;
	for (;;) {
		if (__atomic_load_n(&sink->request, __ATOMIC_ACQUIRE) == DP_SINK_ASKED) {
			event->event = 0;
			evil_text(event->error);
			__atomic_store_n(&sink->request, DP_SINK_SERVED, __ATOMIC_RELEASE);
		}
		usleep(200);
	}
}

static void is_tame(struct dp_error *err)
{
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, ": " TAME "???"), "%s", err->message);
	for (const char *p = err->message; *p; p++)
		cr_assert((unsigned char)*p >= ' ' && *p != 0x7f, "0x%x in the message", *p);
	tr_tag(err, DP_TAG_SINK);
}

Test(printable, why_a_sink_failed)
{
	pid_t pid = tr_spawn(failed_sink);
	struct dp_sink_entries entries;
	struct dp_sink_stats stats = {0};
	struct dp_target *t = pr_open(pid, PR_GATES);
	is_tame(dp_target_sink_check(t));
	is_tame(dp_target_sink_load(t, TR_LIMIT, &entries, &stats));
	dp_target_close(t);
	tr_kill(pid);
}

Test(printable, why_an_event_was_refused)
{
	pid_t pid = tr_spawn(refusing_sink);
	struct dp_fields none = {0};
	struct dp_sink_class class = {.name = "foo", .fields = &none};
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_target_sink_register(t, &class, 1));
	is_tame(class.refused);
	dp_target_close(t);
	tr_kill(pid);
}
