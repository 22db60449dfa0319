// SPDX-License-Identifier: MIT
#include <cstdio>
#include <string>
#include <string_view>

struct Request {
	std::string uri;
	std::string_view host;
	std::wstring wide;
};

__attribute__((noinline)) size_t handle(const Request &r, std::string method, std::string_view v, const std::string *p)
{
	__asm__ volatile("" : : : "memory");
	return r.uri.size() + method.size() + v.size() + p->size();
}

int main()
{
	Request r{"/a/rather/long/path/that/is/on/the/heap", std::string_view("localhost:80", 9), L"w"};
	std::string empty;
	std::printf("%zu\n", handle(r, "GET", std::string_view("view of it", 4), &empty));
}
