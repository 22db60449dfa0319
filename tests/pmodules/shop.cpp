// SPDX-License-Identifier: MIT
// The data that the pmodule examples print: pairs, a vector, a job's name, and a NULL pointer where the program waits.
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

const char *current_job = "night shift";

struct order {
	int number;
	order *next;
};

struct depot_t {
	order *first;
	int counts[3];
	char name[16];
	unsigned long mark;
};
static order last = {-12, nullptr}, first = {11, &last};
depot_t depot = {&first, {1, 2, 3}, "depot", 0xffff888000000001ul};

__attribute__((noinline)) static int serve(order *nobody)
{
	std::pair<int, long> amount(7, 40);
	std::pair<std::pair<char, short>, double> nested({'x', 3}, 0.5);
	std::vector<int> numbers = {10, 20, 30};
	std::vector<order> orders = {{1, nullptr}, {2, nullptr}};
	std::puts("ready");
	std::fflush(stdout);
	pause();
	return nobody ? 1 : amount.first + numbers[0] + orders[0].number + static_cast<int>(nested.second);
}

int main()
{
	return serve(nullptr) == 18 ? 0 : 1;
}
