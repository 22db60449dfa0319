/* SPDX-License-Identifier: MIT */
#include "output/flame/flame_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct dp_flame *flame_of(const char *const *lines)
{
	struct dp_flame *f = NULL;
	cr_assert_null(dp_flame_create(&f));
	for (; *lines; lines++)
		dp_flame_line(f, *lines, strlen(*lines));
	return f;
}

static void expect_boxes(struct dp_flame *f, const char *text)
{
	struct dp_flame_box *box;
	size_t n;
	char *got = NULL;
	size_t size;
	FILE *to = open_memstream(&got, &size);
	cr_assert(dp_flame_boxes(f, &box, &n));
	for (size_t i = 1; i < n; i++)
		fprintf(to, "%u %s %g+%g\n", box[i].depth, f->name[f->node[box[i].node].name], box[i].start,
		        f->node[box[i].node].total);
	fclose(to);
	cr_expect_str_eq(got, text);
	free(got);
	free(box);
}

Test(flame, lines_become_a_tree_whose_siblings_are_in_the_order_of_their_names)
{
	struct dp_flame *f = flame_of((const char *const[]){"main;b;c 3", "main;a 2", "main;b 1", "main;b;c 4\r", NULL});
	expect_boxes(f, "1 main 0+10\n2 a 0+2\n2 b 2+8\n3 c 2+7\n");
	dp_flame_destroy(f);
}

Test(flame, what_is_no_stack_is_counted_and_left_out)
{
	struct dp_flame_stats stats;
	struct dp_flame *f = flame_of((const char *const[]){"main", "12", " 12", "main;f -3", "", "main;f 1.5",
	                                                    "operator new(x y);f 2", "f 1e3", NULL});
	dp_flame_stats(f, &stats);
	cr_expect_eq(stats.stacks, 2);
	cr_expect_eq(stats.skipped, 5);
	cr_expect_eq(stats.total, 3.5);
	expect_boxes(f, "1 main 0+1.5\n2 f 0+1.5\n1 operator new(x y) 1.5+2\n2 f 1.5+2\n");
	dp_flame_destroy(f);
}

Test(flame, frames_below_a_tenth_of_a_pixel_are_left_out_and_counted)
{
	struct dp_flame_stats stats;
	struct dp_flame *f = flame_of((const char *const[]){"main;wide 12000", "main;thin;below 0.5", "main;enough 1.25", NULL});
	expect_boxes(f, "1 main 0+12001.8\n2 enough 0+1.25\n2 wide 1.25+12000\n");
	dp_flame_stats(f, &stats);
	cr_expect_eq(stats.narrow, 1);
	dp_flame_destroy(f);
}

Test(flame, endless_recursion_is_cut)
{
	char *line = NULL;
	size_t size;
	struct dp_flame_box *box;
	size_t n;
	FILE *to = open_memstream(&line, &size);
	for (int i = 0; i < 100000; i++)
		fputs("f;", to);
	fputs("g 1", to);
	fclose(to);
	struct dp_flame *f = flame_of((const char *const[]){line, NULL});
	cr_assert(dp_flame_boxes(f, &box, &n));
	cr_expect_eq(n, DP_FLAME_DEPTH + 1);
	cr_expect_eq(f->stats.narrow, 1);
	free(box);
	free(line);
	dp_flame_destroy(f);
}

Test(flame, a_page_that_no_browser_would_open_is_not_made)
{
	struct dp_flame *f = NULL;
	struct dp_flame_box *box;
	char line[128];
	size_t n;
	cr_assert_null(dp_flame_create(&f));
	for (int i = 0; i < 9000; i++)
		for (int k = 0; k < 25; k++) {
			const int length =
			        snprintf(line, sizeof(line), "f%d;a;b;c;d;e;g;h;i;j;k;l;m;n;o;p;q;r;s;t;u;v;w;x;y;z;f%d 1", i, i);
			dp_flame_line(f, line, (size_t)length);
		}
	cr_assert(dp_flame_boxes(f, &box, &n));
	cr_expect_leq(n, 200001);
	cr_expect_gt(f->stats.narrow, 0);
	free(box);
	dp_flame_destroy(f);
}
