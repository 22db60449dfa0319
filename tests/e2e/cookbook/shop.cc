// SPDX-License-Identifier: MIT
// A shop that sells until SIGTERM, for the cookbook's commands. Its behaviour is known: it takes an order of each kind in turn;
// every fifth is slow, every tenth is refused; an order reduces the stock by one, and an empty stock is refilled.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

enum class Kind { BOOK, MUSIC, GAME };

struct Order {
	int id;
	Kind kind;
	double price;
	std::string customer;
};

static int stock = 20;
static std::mutex till;

namespace shop {

static void pay(double)
{
	std::lock_guard<std::mutex> hold(till);
	std::this_thread::sleep_for(std::chrono::microseconds(300));
}

__attribute__((noinline)) static void greet(const std::string &name)
{
	asm volatile("" : : "r"(&name) : "memory");
}

class Desk {
public:
	virtual ~Desk() = default;
	__attribute__((noinline)) int serve(const Order *order)
	{
		served++;
		if (order->id % 10 == 9)
			throw std::runtime_error("refused");
		if (order->id % 5 == 4)
			usleep(2000);
		greet(order->customer);
		pay(order->price);
		return order->id % 3 - 1;
	}
	int served = 0;
};

} // namespace shop

static void refill()
{
	if (--stock == 0)
		stock = 20;
}

static void seller(const char *name)
{
	shop::Desk desk;
	for (int id = 0;; id++) {
		const Order order = {id, Kind(id % 3), 0.5 * id, std::string("customer ") + name};
		try {
			desk.serve(&order);
		} catch (const std::runtime_error &) {
		}
		refill();
	}
}

int main()
{
	std::thread other(seller, "B");
	puts("READY");
	fflush(stdout);
	seller("A");
}
