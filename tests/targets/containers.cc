/* SPDX-License-Identifier: MIT */
/* containers: strings and containers of libstdc++ with known elements, and damaged ones, until SIGTERM. */
#include <cstdio>
#include <cstring>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unistd.h>
#include <variant>
#include <vector>

struct point {
	int x, y;
};

struct closer {
	int with;
	void operator()(point *p) const
	{
		delete p;
	}
};

#define KEEP(v) __asm__ volatile("" ::"r"(&v) : "memory")

/* Overwritten containers: wild pointers, a ring, a huge length. */
__attribute__((noinline)) static void damaged()
{
	alignas(16) static char space[4][96];
	std::vector<int> &wild = *new (space[0]) std::vector<int>;
	std::list<int> &ring = *new (space[1]) std::list<int>{1, 2, 3};
	std::string &endless = *new (space[2]) std::string("text");
	std::deque<int> &nowhere = *new (space[3]) std::deque<int>{1};
	const uint64_t far[3] = {0x1000, uint64_t(1) << 60, uint64_t(1) << 61}, huge = uint64_t(1) << 62;
	memcpy(space[0], far, sizeof(far));
	memcpy(*(char **)space[1], space[1], 8); /* the first node points to itself */
	memcpy(space[1] + 16, &huge, 8);
	memcpy(space[2] + 8, &huge, 8);
	memset(space[3] + 16, 0x41, 24);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	pause();
	KEEP(wild); KEEP(ring); KEEP(endless); KEEP(nowhere);
}

__attribute__((noinline)) static void more()
{
	std::vector<bool> bits = {true, false, true, true};
	std::deque<int> both_ends;
	for (int i = 0; i < 200; i++)
		i % 2 ? both_ends.push_back(i) : both_ends.push_front(i);
	std::list<std::string> chain = {"a", "b"};
	std::forward_list<long> forward = {7, 8, 9};
	std::optional<int> some = 5, nothing;
	std::optional<point> somewhere = point{5, 6};
	std::variant<int, std::string, point> choice = std::string("chosen");
	std::unique_ptr<point> alone = std::make_unique<point>(point{7, 8}), nobody;
	std::unique_ptr<point, closer> closed(new point{9, 10}, closer{1});
	std::shared_ptr<int> shared = std::make_shared<int>(11), other = shared;
	std::weak_ptr<int> weak = shared;
	std::weak_ptr<int> expired = std::make_shared<int>(1);
	std::string_view view = std::string_view("a view of it").substr(2, 4);
	damaged();
	KEEP(bits); KEEP(both_ends); KEEP(chain); KEEP(forward); KEEP(some); KEEP(nothing); KEEP(somewhere); KEEP(choice); KEEP(alone);
	KEEP(nobody); KEEP(closed); KEEP(shared); KEEP(other); KEEP(weak); KEEP(expired); KEEP(view);
}

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
	more();
	__asm__ volatile("" ::"r"(&small), "r"(&large), "r"(&empty), "r"(&numbers), "r"(&words), "r"(&points), "r"(&none) : "memory");
	__asm__ volatile("" ::"r"(&names), "r"(&set), "r"(&ages), "r"(&given) : "memory");
	return numbers.size() + words.size() + names.size() + set.size() + ages.size();
}

int main()
{
	std::string given = "given";
	return hold(given) == 5 + 2 + 3 + 3 + 1 ? 0 : 1;
}
