/* SPDX-License-Identifier: MIT */
/* Modules in C: their errors do not affect the host. */
#include "helper_model.h"
#include "pmodules/load/load.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AMPLE UINT64_C(10000000000) /* for tests that are not about time, on a busy machine too */

static struct log log_;
static struct model model;

static struct dp_host *loaded(const char *file, const char *option, struct dp_host_options options)
{
	char path[4096];
	memset(&log_, 0, sizeof(log_));
	model_make(&model);
	struct dp_host *h = host_with(&options, &log_);
	if (option)
		cr_assert_null(dp_host_option(h, option));
	snprintf(path, sizeof(path), "%s/%s.so", DP_TEST_MODULES, file);
	struct dp_error *err = dp_host_load(h, path);
	cr_assert_null(err, "%s", err->message);
	return h;
}

static void done(struct dp_host *h)
{
	dp_host_destroy(h);
	dp_snapshot_destroy(model.s);
}

Test(c_module, events_come_bottom_up_and_in_order)
{
	struct dp_host *h = loaded("recorder", NULL, (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	cr_assert_str_eq(attribute(model.s, "order"),
	                 "preattach attach variable:p variable:* variable:n variable:i frame:inner variable:text frame:outer "
	                 "thread:worker frame:wait thread:idle variable:g postattach");
	cr_assert(dp_host_wants_held(h));
	done(h);
}

Test(c_module, a_deferred_module_costs_no_pause)
{
	struct dp_host *h = loaded("recorder", "recorder:defer,1", (struct dp_host_options){.budget_ns = AMPLE});
	cr_assert(dp_host_wants_held(h), "it has an attach callback");
	run_all(h, model.s);
	cr_assert_str_eq(attribute(model.s, "order"),
	                 "preattach attach variable:p variable:* variable:n variable:i frame:inner variable:text frame:outer "
	                 "thread:worker frame:wait thread:idle variable:g postattach");
	memset(&log_, 0, sizeof(log_));
	done(h);
}

static void crash(const char *how, const char *said)
{
	char option[64];
	snprintf(option, sizeof(option), "misbehave:how,%s", how);
	struct dp_host *h = loaded("misbehave", option, (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	cr_assert(strstr(log_.text, said), "%s: %s", how, log_.text);
	cr_assert_eq(log_.errors, 1, "%s: it must be called once only: %s", how, log_.text);
	cr_assert_eq(count_notes(model.worker->notes, "before"), 1, "its earlier results stay");
	cr_assert_eq(count_notes(model.worker->notes, "behind"), 0);
	cr_assert_eq(attribute_int(model.s, "pmodule.misbehave.errors"), 1);
	cr_assert_eq(attribute_int(model.s, "misbehave.postattach"), -1);
	cr_assert(has_word(model.s->classifiers, "pmodule-error"));
	run_all(h, model.s); /* the next snapshot */
	cr_assert_eq(count_notes(model.worker->notes, "before"), 1, "%s: a broken module is called again", how);
	done(h);
}

Test(c_module, a_crash_ends_the_module_alone)
{
	crash("null", "crashed (Segmentation fault at 0)");
	crash("illegal", "crashed (Illegal instruction)");
	crash("divide", "crashed (Floating point exception)");
}

Test(c_module, a_crash_in_a_function_that_it_called)
{
	crash("libc", "crashed (Segmentation fault at ");
	crash("abort", "crashed (Aborted)");
}

Test(c_module, an_endless_recursion)
{
	crash("stack", "crashed (Segmentation fault at ");
}

Test(c_module, a_crash_in_load_refuses_it_and_one_in_unload_is_survived)
{
	char path[4096];
	struct dp_host *h;
	memset(&log_, 0, sizeof(log_));
	h = host_with(&(struct dp_host_options){.budget_ns = AMPLE}, &log_);
	cr_assert_null(dp_host_option(h, "misbehave:how,load"));
	snprintf(path, sizeof(path), "%s/misbehave.so", DP_TEST_MODULES);
	struct dp_error *err = dp_host_load(h, path);
	cr_assert(err && strstr(err->message, "load()"));
	cr_assert_eq(err->tag, DP_TAG_PMODULE, "DP-PMODULE");
	dp_error_destroy(err);
	dp_host_destroy(h);
	done(loaded("misbehave", "misbehave:how,unload", (struct dp_host_options){.budget_ns = AMPLE}));
	cr_assert(strstr(log_.text, "crashed"));
}

static void loop(const char *how)
{
	char option[64];
	snprintf(option, sizeof(option), "misbehave:how,%s", how);
	struct dp_host *h = loaded("misbehave", option, (struct dp_host_options){.budget_ns = 300000000});
	run_all(h, model.s);
	cr_assert(strstr(log_.text, "its time is up"), "%s", log_.text);
	cr_assert_eq(log_.errors, 1, "%s", log_.text);
	cr_assert(has_word(model.s->classifiers, "pmodule-timeout"));
	cr_assert_eq(count_notes(model.worker->notes, "before"), 1);
	cr_assert_eq(count_notes(model.idle->notes, "before"), 0, "cut off for the rest of the snapshot");
	dp_host_begin(h, model.s);
	dp_host_postattach(h); /* the next snapshot has a new time limit */
	cr_assert_eq(attribute_int(model.s, "misbehave.postattach"), 1);
	dp_host_end(h);
	done(h);
}

Test(c_module, an_endless_loop_is_cut_off)
{
	loop("loop");
	loop("loop-api");
}

Test(c_module, one_that_calls_exit_ends_itself_and_not_the_tool)
{
	crash("exit", "called exit()");
	crash("exit-pointer", "called exit()");
	crash("_exit", "called _exit()");
	crash("pthread_exit", "called pthread_exit()");
}

Test(c_module, exit_in_load_refuses_the_module)
{
	char path[4096];
	memset(&log_, 0, sizeof(log_));
	struct dp_host *h = host_with(&(struct dp_host_options){.budget_ns = AMPLE}, &log_);
	cr_assert_null(dp_host_option(h, "misbehave:how,exit-load"));
	snprintf(path, sizeof(path), "%s/misbehave.so", DP_TEST_MODULES);
	struct dp_error *err = dp_host_load(h, path);
	cr_assert(err && err->cause && strstr(err->cause->message, "called exit()"), "%s", err ? err->message : "loaded");
	dp_error_destroy(err);
	dp_host_destroy(h);
}

Test(c_module, err_says_its_reason_and_ends_the_module_alone)
{
	struct dp_host *h = loaded("misbehave", "misbehave:how,errx", (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	cr_assert(strstr(log_.text, "no way"), "%s", log_.text);
	cr_assert(strstr(log_.text, "called err()"), "%s", log_.text);
	done(h);
}

#ifndef __SANITIZE_ADDRESS__ /* the sanitizer tracks threads and their ends */
Test(c_module, exit_in_a_thread_of_its_own_ends_that_thread)
{
	struct dp_host *h = loaded("misbehave", "misbehave:how,exit-thread", (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	cr_assert_eq(log_.errors, 0, "%s", log_.text);
	cr_assert_eq(count_notes(model.worker->notes, "behind"), 1);
	done(h);
}

Test(c_module, threads_of_its_own_end_as_they_like)
{
	struct dp_host *h = loaded("misbehave", "misbehave:how,thread-ends", (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	cr_assert_eq(log_.errors, 0, "%s", log_.text);
	cr_assert_eq(count_notes(model.worker->notes, "behind"), 1);
	done(h);
}
#endif

#define IN_TIME 3 /* the module was ended in its own code */

/* The exit status of a tool in which the module misbehaves as `option` says. */
static int status_of(const char *option, uint64_t budget_ns)
{
	int status;
	const pid_t child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct dp_host *h = loaded("misbehave", option, (struct dp_host_options){.budget_ns = budget_ns});
		run_all(h, model.s);
		_exit(strstr(log_.text, "did not return in time") ? IN_TIME : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The tool ends, and the process that it holds continues: that is better than to hold it forever. */
Test(c_module, one_that_is_stuck_in_a_call_ends_the_tool)
{
	int status = IN_TIME;
	/* Without a processor for as long as its budget, it is ended before it is stuck. */
	for (uint64_t ns = 50000000; status == IN_TIME && ns < AMPLE; ns *= 4)
		status = status_of("misbehave:how,stuck", ns);
	cr_assert_eq(status, 125);
}

/* Where exit() cannot be undone, the tool must not end with status 0. */
Test(c_module, exit_inside_of_libc_ends_the_tool_with_its_own_status)
{
	cr_assert_eq(status_of("misbehave:how,exit-libc", 0), 125);
}

Test(c_module, signals_are_the_tools_again_afterwards)
{
	struct sigaction before, behind;
	stack_t stack;
	sigaction(SIGSEGV, NULL, &before);
	struct dp_host *h = loaded("misbehave", "misbehave:how,null", (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	sigaction(SIGSEGV, NULL, &behind);
	cr_assert_eq(before.sa_sigaction, behind.sa_sigaction);
	sigaction(SIGRTMAX - 2, NULL, &behind);
	cr_assert_eq(behind.sa_handler, SIG_DFL);
	sigaltstack(NULL, &stack);
	cr_assert(stack.ss_flags & SS_DISABLE || stack.ss_size != 65536);
	done(h);
}

static void refused(const char *file, const char *said)
{
	char path[4096];
	struct dp_host *h;
	memset(&log_, 0, sizeof(log_));
	model_make(&model);
	h = host_with(&(struct dp_host_options){.budget_ns = AMPLE}, &log_);
	snprintf(path, sizeof(path), "%s/%s", DP_TEST_MODULES, file);
	struct dp_error *err = dp_host_load(h, path);
	cr_assert_not_null(err, "%s", file);
	cr_assert_eq(err->tag, DP_TAG_PMODULE);
	cr_assert(strstr(err->message, said), "%s: %s", file, err->message);
	dp_error_destroy(err);
	cr_assert_eq(dp_host_nmodules(h), 0);
	run_all(h, model.s);
	cr_assert_null(model.inner->notes, "a refused module was called");
	done(h);
}

Test(c_module, an_option_for_nobody_is_said_once)
{
	struct dp_host *h = loaded("recorder", "recordr:defer,1", (struct dp_host_options){.budget_ns = AMPLE});
	run_all(h, model.s);
	run_all(h, model.s);
	cr_assert_eq(log_.warnings, 1);
	cr_assert(strstr(log_.text, "no pmodule has that id"));
	done(h);
}

Test(c_module, what_is_no_module_is_refused)
{
	refused("not_a_module.so", "does not define pmodule_export_v1");
	refused("old_abi.so", "built for version 2");
	refused("load_false.so", "returned false");
	refused("undefined.so", "pmodule_of_the_future");
	refused("missing.so", "No such file");
	refused("CMakeFiles", "cannot load");
	refused("cmake_install.cmake", "it is neither a shared object nor a *.lua file");
}

Test(c_module, the_same_id_twice_is_refused)
{
	char path[4096];
	struct dp_host *h = loaded("recorder", NULL, (struct dp_host_options){.budget_ns = AMPLE});
	snprintf(path, sizeof(path), "%s/recorder.so", DP_TEST_MODULES);
	struct dp_error *err = dp_host_load(h, path);
	cr_assert(err && strstr(err->message, "is already used"));
	dp_error_destroy(err);
	run_all(h, model.s);
	cr_assert_eq(dp_host_nmodules(h), 1);
	cr_assert_str_eq(dp_host_module_id(h, 0), "recorder");
	cr_assert_eq(dp_host_callbacks(h, 0, DP_EVENT_VARIABLE), 1);
	done(h);
}

Test(c_module, a_directory_is_loaded_by_name_and_bad_ones_are_said)
{
	memset(&log_, 0, sizeof(log_));
	struct dp_host *h = host_with(&(struct dp_host_options){.budget_ns = AMPLE}, &log_);
	cr_assert_null(dp_host_load_dir(h, DP_TEST_MODULES));
	cr_assert_eq(dp_host_nmodules(h), 4);
	cr_assert_str_eq(dp_host_module_id(h, 0), "conformance");
	cr_assert_str_eq(dp_host_module_id(h, 3), "recorder");
	cr_assert_eq(log_.errors, 4, "%s", log_.text);
	dp_host_destroy(h);
}
