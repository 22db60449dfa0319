// SPDX-License-Identifier: MIT
// cxxthrow: C++ exceptions thrown through probed functions, past frames with destructors.
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unistd.h>

static volatile std::sig_atomic_t stop;
static long destroyed;

struct Guard {
	~Guard() { destroyed++; }
};

extern "C" __attribute__((noipa)) int thrower(int i)
{
	if (i & 1)
		throw std::runtime_error(std::to_string(i));
	return i;
}

extern "C" __attribute__((noipa)) int middle(int i)
{
	Guard guard;
	return thrower(i) + 1;
}

int main()
{
	long bad = 0, rounds = 0;
	struct sigaction action = {};
	action.sa_handler = [](int) { stop = 1; };
	action.sa_flags = SA_RESTART;
	sigaction(SIGTERM, &action, nullptr);
	std::printf("READY %d\n", (int)getpid());
	std::fflush(stdout);
	for (int i = 0; !stop; i = (i + 1) & 0xffffff, rounds++) {
		try {
			if (middle(i) != i + 1 || (i & 1))
				bad++;
		} catch (const std::runtime_error &e) {
			if (!(i & 1) || e.what() != std::to_string(i))
				bad++;
		}
		if (i % 50 == 0)
			usleep(1000);
	}
	if (destroyed != rounds)
		bad++;
	std::printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
