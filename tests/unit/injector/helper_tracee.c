/* SPDX-License-Identifier: MIT */
#include "helper_tracee.h"

#include "agent/call.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct tr_shared *tr;

void tr_sleep_us(long us)
{
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

pid_t tr_spawn(void (*fn)(void))
{
	if (!tr)
		tr = mmap(NULL, sizeof(*tr), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	tr->ready = 0;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		fn();
		_exit(0);
	}
	cr_assert(pid > 0);
	cr_assert(tr_await_value(&tr->ready, 1), "target did not start");
	return pid;
}

void tr_idle(void)
{
	tr->ready = 1;
	tr_idle_thread(NULL);
}

void *tr_idle_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

char tr_state(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) ? stat.state : '?';
}

bool tr_await(pid_t pid, char state, long nr)
{
	long now;
	uint64_t args[6];
	return until(tr_state(pid) == state &&
	             (nr < 0 || (dp_proc_syscall(pid, pid, &now, args) && (now == nr || now == SYS_restart_syscall))));
}

bool tr_await_value(volatile long *at, long least)
{
	return until(*at >= least);
}

struct dp_process tr_process(pid_t pid)
{
	struct dp_process p = {0};
	tr_ok(dp_process_check(pid, true, &p));
	return p;
}

struct dp_borrow *tr_lend(const struct dp_process *p)
{
	struct dp_borrow *b;
	tr_ok(dp_borrow_begin(p, NULL, TR_LIMIT, false, &b));
	return b;
}

int64_t tr_plain(struct dp_borrow *b, long nr)
{
	return tr_remote(b, nr, 0, 0, 0, 0, 0, 0);
}

int64_t tr_remote(struct dp_borrow *b, long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	const uint64_t args[6] = {a0, a1, a2, a3, a4, a5};
	int64_t result = -1;
	tr_ok(dp_remote_syscall(b, nr, args, &result));
	return result;
}

bool tr_may_give_up;

/* No thread could be borrowed or stopped in time, or one restored itself meanwhile. */
static bool is_too_late(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_THREAD || err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_REMOTE;
}

void tr_ok_(struct dp_error *err, int line)
{
	if (err && tr_may_give_up && is_too_late(err))
		_exit(TR_GAVE_UP);
	if (err)
		dp_error_print(err, stderr);
	cr_assert_null(err, "at line %d", line);
}

void tr_tag_(struct dp_error *err, enum dp_tag tag, int line)
{
	cr_assert_not_null(err, "line %d: no error, %s expected", line, dp_tag_name(tag));
	if (err->tag != tag)
		dp_error_print(err, stderr);
	cr_assert(err->tag == tag, "line %d: %s instead of %s", line, dp_tag_name(err->tag), dp_tag_name(tag));
	dp_error_destroy(err);
}

struct dp_call_site tr_call_site;

void tr_map_call(void)
{
	struct dp_agent_image agent;
	tr_ok(dp_agent_image_load(&agent));
	uint8_t *text = mmap(NULL, DP_SINK_DATA + (2u << 20), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(text != MAP_FAILED);
	memcpy(text, agent.bytes, agent.size);
	cr_assert(mprotect(text, DP_SINK_DATA, PROT_READ | PROT_EXEC) == 0);
	tr_call_site.entry = (uint64_t)(uintptr_t)text + agent.call;
	tr_call_site.frame = tr_call_site.entry + DP_CALL_DISTANCE;
	tr_call_site.stack = (uint64_t)(uintptr_t)text + DP_SINK_DATA + (1u << 20) + (256u << 10);
	tr_call_site.errno_location = (uint64_t)(uintptr_t)__errno_location;
}
