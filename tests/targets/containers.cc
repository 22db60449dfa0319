/* SPDX-License-Identifier: MIT */
/* containers: strings and containers of libstdc++ with known elements in one frame, until SIGTERM. */
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unistd.h>
#include <vector>

struct point {
	int x, y;
};

__attribute__((noinline)) static size_t hold(const std::string &given)
{
	std::string small = "short", large(300, 'x'), empty;
	std::vector<int> numbers = {3, 1, 4, 1, 5};
	std::vector<std::string> words = {"one", "two"};
	std::vector<point> points = {{1, 2}, {3, 4}};
	std::vector<int> none;
	std::map<int, std::string> names = {{2, "deux"}, {1, "un"}, {3, "trois"}};
	std::set<long> set = {30, 10, 20};
	std::unordered_map<std::string, int> ages = {{"ada", 36}};
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	pause();
	__asm__ volatile("" ::"r"(&small), "r"(&large), "r"(&empty), "r"(&numbers), "r"(&words), "r"(&points), "r"(&none) : "memory");
	__asm__ volatile("" ::"r"(&names), "r"(&set), "r"(&ages), "r"(&given) : "memory");
	return numbers.size() + words.size() + names.size() + set.size() + ages.size();
}

int main()
{
	std::string given = "given";
	return hold(given) == 5 + 2 + 3 + 3 + 1 ? 0 : 1;
}
