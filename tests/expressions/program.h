/* SPDX-License-Identifier: MIT */
/* The program form: in each round it prints C's own results of all cases on one line, then calls the site with the same values.
 */
static void print_answer(const struct answer *r)
{
	double d;
	memcpy(&d, &r->value, sizeof(d));
	if (r->failed)
		printf("null");
	else if (r->is_float && isfinite(d))
		printf("%.17g", d);
	else if (r->is_float)
		printf("\"%s\"", isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
	else if (r->is_signed)
		printf("%lld", (long long)r->value);
	else
		printf("%llu", (unsigned long long)r->value);
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10, seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	struct answer r;
	for (unsigned n = 0; n < rounds; n++) {
		world_randomize(seed + n);
		for (unsigned i = 0; i < ncases; i++) {
			world_answer(i, &r);
			printf(i ? "," : "[");
			print_answer(&r);
		}
		printf("]\n");
		site(P.pi, P.pc, P.pl, P.ps, P.pu, P.pn, P.pd, P.pf, P.stack_long, P.stack_short);
	}
	return 0;
}
