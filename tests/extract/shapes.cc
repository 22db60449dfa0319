// SPDX-License-Identifier: MIT
// Common types of variables in C++, to compare with gdb's reading. Waits forever.
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace space
{
enum class color : unsigned char { red = 1, green = 2, blue = 4 };
struct base {
	int id = 1;
	virtual ~base() = default;
	virtual int area() const
	{
		return id;
	}
};
struct other {
	long more = 22;
	static int shared;
};
int other::shared = 5;
struct shape : base, other {
	double side = 1.5;
	unsigned flag : 3;
	int sign : 5;
	union {
		int whole = 77;
		float part;
	};
	color tint = color::green;
	int shape::*pointer = nullptr;
	std::string name = "a shape";
	shape() : flag(5), sign(-3)
	{
	}
	int area() const override
	{
		return 4;
	}
	__attribute__((noinline)) int wait(const shape &like, std::vector<int> &numbers, bool yes, char sign_char) const;
};
struct diamond_left : virtual base {
	int left = 31;
};
struct diamond_right : virtual base {
	int right = 32;
};
struct diamond : diamond_left, diamond_right {
	int bottom = 33;
};

static inline int mix(int a, int b)
{
	int sum = a * 3 + b;
	pause();
	return sum;
}

template <typename T, int N> struct holder {
	T item[N];
	__attribute__((noinline)) T total(T start, unsigned long count) const
	{
		T sum = start;
		for (unsigned long i = 0; i < count; i++)
			sum += item[i % N];
		sum += mix((int)sum, (int)count);
		return sum + (T)count;
	}
};

int shape::wait(const shape &like, std::vector<int> &numbers, bool yes, char sign_char) const
{
	holder<int, 3> h = {{1, 2, 3}};
	std::map<int, std::string> names = {{1, "one"}, {2, "two"}};
	auto owned = std::make_unique<shape>();
	auto lambda = [&](int x) { return h.total(x, numbers.size()) + like.flag; };
	int result = lambda(numbers[1]) + yes + sign_char + (int)names.size() + owned->area();
	return result + like.id;
}
} // namespace space

static thread_local int mark = 3;

static void *other_thread(void *argument)
{
	space::shape s;
	std::vector<int> numbers = {4, 5, 6};
	space::diamond d;
	mark = 8;
	long r = s.wait(*static_cast<space::shape *>(argument), numbers, true, '-');
	return reinterpret_cast<void *>(r + mark + d.bottom);
}

int main()
{
	space::shape s;
	pthread_t t;
	std::vector<int> numbers = {10, 20, 30};
	pthread_create(&t, nullptr, other_thread, &s);
	return s.wait(s, numbers, false, '+');
}
