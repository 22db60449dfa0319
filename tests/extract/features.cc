// SPDX-License-Identifier: MIT
// Frames with the rarer parts of C++, to compare with gdb's reading. Waits forever.
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <unordered_map>
#include <vector>
#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

#define NOINLINE __attribute__((noinline))
static volatile int sink, stop;

namespace space
{
enum class color : unsigned char { red = 1, green = 200 };
enum signs { minus = -1, zero, large = 200 };
struct A {
	int a = 1;
	long b = 2;
	static const int constant = 9;
	virtual int first(int)
	{
		return 1;
	}
	virtual ~A() = default;
	virtual int second() const
	{
		return 2;
	}
	int plain(long x)
	{
		return (int)x + a;
	}
};
struct B {
	char c = 'c';
	int d = 4;
	virtual int third()
	{
		return 3;
	}
};
struct C : A, private B {
	double e = 5;
	int first(int) override
	{
		return 4;
	}
	virtual int last()
	{
		return 6;
	}
	int D = 4;
};
struct top {
	int top_ = 10;
	virtual int where()
	{
		return top_;
	}
};
struct left : virtual top {
	int left_ = 11;
};
struct right : virtual top {
	int right_ = 12;
};
struct bottom : left, right {
	int bottom_ = 13;
	unsigned narrow : 3, : 2, wide : 20;
	color tint : 8;
	union {
		int number = 7;
		float real;
		struct {
			short low, high;
		};
	};
	NOINLINE int where() override;
};
template <typename T, int N = 3> struct holder {
	T item[N];
	template <typename F> NOINLINE auto each(F f, T &&last) -> decltype(f(last))
	{
		auto sum = f(last);
		for (auto &x : item)
			sum += f(x);
		return sum;
	}
};
template <typename... T> struct pack : T... {
	std::tuple<T...> all;
};

static void wait_for_ever()
{
	while (!stop)
		pause();
}

static void in_memory(const void *object)
{
	__asm__ volatile("" : : "r"(object) : "memory");
}
template <typename... T> static void in_memory(T &...object)
{
	(in_memory((const void *)&object), ...);
}

NOINLINE static int members(C &object)
{
	int A::*pa = &A::a;
	long A::*pb = &A::b;
	double C::*pe = &C::e;
	long A::*none = nullptr;
	int (A::*m1)(int) = &A::first;
	int (A::*m2)() const = &A::second;
	int (A::*m3)(long) = &A::plain;
	int (C::*m4)() = &C::last;
	int (C::*m5)(int) = &C::first;
	int (C::*m6)() = nullptr;
	auto nothing = nullptr;
	const signs s = large, t = minus;
	wait_for_ever();
	return object.*pa + (int)(object.*pb) + (int)(object.*pe) + (none == nullptr) + (object.*m1)(1) + (object.*m2)() +
	       (object.*m3)(2) + (object.*m4)() + (object.*m5)(1) + (m6 == nullptr) + (nothing == nullptr) + s + t;
}

int bottom::where()
{
	C object;
	const left &l = *this;
	right *r = this;
	top &&t = static_cast<top &&>(*this);
	const int result = members(object);
	return result + l.left_ + r->right_ + t.top_;
}

NOINLINE static int lambdas(int n, std::string text)
{
	holder<int> h = {{1, 2, 3}};
	holder<std::pair<char, long>, 2> pairs = {{{'a', 1}, {'b', 2}}};
	bottom b;
	b.narrow = 5;
	b.wide = 77777;
	b.tint = color::green;
	auto by_value = [n, text, &h](int x) mutable {
		n += x;
		return n + (int)text.size() + h.item[0];
	};
	auto generic = [&](auto x) {
		auto inner = [=, &b] { return b.where() + (int)x; };
		return inner() + by_value(x);
	};
	return h.each(generic, 5) + (int)pairs.item[0].second;
}

struct error : std::runtime_error {
	int code;
	error(int c) : std::runtime_error("an error"), code(c)
	{
	}
	~error() override
	{
		sink = sink + code;
	}
};

struct unwinds {
	int n;
	~unwinds()
	{
		int during = std::uncaught_exceptions();
		wait_for_ever();
		sink = sink + during;
	}
};

NOINLINE static void throws(int n)
{
	unwinds u{n};
	sink = sink + n;
	throw error(n + 1);
}

NOINLINE static int exceptions(int n)
{
	try {
		throws(n);
	} catch (const error &e) {
		return e.code;
	}
	return 0;
}

NOINLINE static int catches(int n)
{
	try {
		sink = sink + n;
		throw error(n);
	} catch (error &e) {
		int caught = e.code + 1;
		wait_for_ever();
		return caught;
	}
}

NOINLINE static int containers()
{
	std::vector<std::string> names = {"one", "two, which is longer than sixteen"};
	std::vector<bool> bits = {true, false, true};
	std::deque<int> deque = {1, 2, 3};
	std::list<long> list = {4, 5};
	std::set<char> set = {'x', 'y'};
	std::unordered_map<std::string, int> map = {{"k", 1}};
	std::optional<int> some = 3, none;
	std::tuple<int, char, double> tuple = {1, 'c', 2.5};
	std::shared_ptr<int> shared = std::make_shared<int>(9);
	std::weak_ptr<int> weak = shared;
	std::function<int(int)> function = [&](int x) { return x + *shared; };
	std::atomic<long> atomic{12};
	std::string_view view = names[1];
	std::exception_ptr error_pointer;
	const int &bound = 5 + sink;
	/* Keep these in memory: if they are split into registers, gdb 13 does not show their empty bases. */
	in_memory(bits, deque, list, set, map, some, none, tuple, shared, weak, function, atomic, view, error_pointer);
	wait_for_ever();
	return (int)(names.size() + bits.size() + deque.size() + list.size() + set.size() + map.size()) + *some +
	       none.has_value() + std::get<0>(tuple) + function(1) + (int)atomic + (int)view.size() + bound + weak.expired() +
	       (error_pointer == nullptr);
}

#if defined(__cpp_impl_coroutine)
struct task {
	struct promise_type {
		int value = 3;
		task get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_value(int v)
		{
			value = v;
		}
		void unhandled_exception()
		{
		}
	};
	std::coroutine_handle<promise_type> handle;
};

static task coroutine(int n, std::string text)
{
	int kept = n * 2;
	co_await std::suspend_always{};
	kept += (int)text.size();
	wait_for_ever();
	co_return kept;
}

NOINLINE static int coroutines()
{
	task t = coroutine(4, "text");
	t.handle.resume();
	t.handle.resume();
	return t.handle.promise().value;
}
#else
NOINLINE static int coroutines()
{
	wait_for_ever();
	return 0;
}
#endif
} // namespace space

int main()
{
	std::thread t[] = {std::thread([] { sink = space::exceptions(1); }), std::thread([] { sink = space::catches(2); }),
	                   std::thread([] { sink = space::containers(); }), std::thread([] { sink = space::coroutines(); })};
	const int r = space::lambdas(3, "captured");
	for (auto &x : t)
		x.join();
	return r;
}
