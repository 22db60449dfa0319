/* SPDX-License-Identifier: MIT */
/*
 * killat N FILE COMMAND...: runs COMMAND and kills it with SIGKILL at the N-th system call stop (each call has two: entry and
 * exit). With N = 0 it only counts. It writes "STOPS CALL" to FILE, where CALL is the number of the last system
 * call.
 */
#include "target.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static pid_t start(char **argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC));
	/* Counting begins with the program's first stop. */
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return pid;
}

static void report(const char *file, long stops, long long call)
{
	FILE *f = fopen(file, "w");
	if (f) {
		fprintf(f, "%ld %lld\n", stops, call);
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	long wanted = strtol(argv[1], NULL, 0), stops = 0, signal_to_pass = 0;
	long long call = -1;
	pid_t pid = start(argv + 3);
	int status = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)signal_to_pass) != 0 || waitpid(pid, &status, 0) != pid)
			break;
		signal_to_pass = 0;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			break;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			struct user_regs_struct regs;
			if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0)
				call = (long long)regs.orig_rax;
			if (++stops == wanted) {
				kill(pid, SIGKILL);
				waitpid(pid, &status, 0);
				break;
			}
		} else if (status >> 16 == 0) {
			signal_to_pass = WSTOPSIG(status);
		}
	}
	report(argv[2], stops, call);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
