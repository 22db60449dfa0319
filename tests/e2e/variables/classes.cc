/* SPDX-License-Identifier: MIT */
#include "values.h"

namespace ns
{
int depth = 4;
enum class Mode { off, on = 3 };
struct Base {
	int id;
	virtual ~Base() {}
};
struct Shape : Base {
	double w;
	union {
		unsigned u;
		float v;
	};
	int area(int k, const Base &other, Mode m, const int &ref);
	static int made;
};
int Shape::made = 3;

__attribute__((noinline)) int Shape::area(int k, const Base &other, Mode m, const int &ref)
{
	made++;
	depth += 2;
	int sum = (int)w + k + other.id + (int)m + (int)u + ref;
	__asm__ volatile("" : "+r"(sum));
	return sum;
}
} // namespace ns

int main(int argc, char **argv)
{
	ns::Shape s;
	const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	for (int i = 0; i < rounds; i++) {
		ns::Base other;
		other.id = (int)any();
		s.id = (int)any();
		s.w = (double)(int16_t)any() / 4;
		s.u = (uint32_t)any();
		const int k = (int)any(), ref = (int)any();
		const ns::Mode m = any() & 1 ? ns::Mode::on : ns::Mode::off;
		printf("{\"k\":%d,\"other_id\":%d,\"m\":\"%s\",\"id\":%d,\"w\":%.17g,\"u\":%u,\"made\":%d,\"depth\":%d,\"is_on\":%d,\"ref\":%d}\n", k, other.id,
		       m == ns::Mode::on ? "on" : "off", s.id, s.w, s.u, ns::Shape::made, ns::depth, m == ns::Mode::on, ref);
		s.area(k, other, m, ref);
		breathe(i);
	}
	return 0;
}
