/* SPDX-License-Identifier: MIT */
/* Waiting for source lines: the lookups here take as long as the test wants. */
#include "probes/point/source/source_lines.h"
#include "probes/point/source/source_lookup.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_NS UINT64_C(1000000)

static sem_t go;

struct dp_source dp_source_lookup(struct dp_source_file *file, uint64_t vaddr)
{
	struct dp_source_frame *frame = calloc(1, sizeof(*frame));
	(void)file;
	sem_wait(&go);
	if (!frame)
		abort();
	frame->line = (int)vaddr;
	return (struct dp_source){.frame = frame, .n = 1};
}

void dp_source_fini(struct dp_source *source)
{
	free((void *)(uintptr_t)source->frame);
}

void dp_source_file_fini(struct dp_source_file *file)
{
	free(file->path);
	free(file->root);
	free(file->build_id);
}

static const struct dp_source_asked *ask(struct dp_source_lines *lines, uint64_t vaddr)
{
	return dp_source_lines_ask(lines, &(const struct dp_source_at){.path = "/p", .root = "", .build_id = "1", .vaddr = vaddr});
}

static void setup(void)
{
	cr_assert_eq(sem_init(&go, 0, 0), 0);
}

TestSuite(source_lines, .init = setup);

Test(source_lines, a_bounded_wait_ends_without_the_answer_and_is_no_miss)
{
	struct dp_source_lines *lines = dp_source_lines_create(-1);
	const struct dp_source_asked *a = ask(lines, 3);
	dp_source_lines_wait(lines, WAIT_NS);
	cr_assert(!dp_source_is_known(a));
	cr_assert_eq(dp_source_of(a).n, 0);
	cr_assert(!dp_source_lines_missed(lines));
	sem_post(&go);
	dp_source_lines_finish(lines);
	cr_assert_eq(dp_source_of(a).frame->line, 3);
	cr_assert(!dp_source_lines_missed(lines));
	dp_source_lines_destroy(lines);
}

Test(source_lines, the_last_wait_is_for_all_that_was_asked)
{
	struct dp_source_lines *lines = dp_source_lines_create(-1);
	const struct dp_source_asked *a[] = {ask(lines, 3), ask(lines, 4), ask(lines, 5)};
	for (int i = 0; i < 3; i++)
		sem_post(&go);
	dp_source_lines_finish(lines);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(dp_source_of(a[i]).frame->line, 3 + i);
	dp_source_lines_destroy(lines);
}

Test(source_lines, a_signal_ends_the_last_wait_and_that_is_known, .timeout = 60) /* without a signal it lasts two minutes */
{
	int hurry[2];
	cr_assert_eq(pipe(hurry), 0);
	cr_assert_eq(write(hurry[1], "", 1), 1);
	struct dp_source_lines *lines = dp_source_lines_create(hurry[0]);
	const struct dp_source_asked *a = ask(lines, 3);
	dp_source_lines_finish(lines);
	cr_assert(!dp_source_is_known(a));
	cr_assert(dp_source_lines_missed(lines));
	sem_post(&go);
	dp_source_lines_destroy(lines);
}

Test(source_lines, nothing_asked_is_nothing_to_wait_for)
{
	struct dp_source_lines *lines = dp_source_lines_create(-1);
	dp_source_lines_finish(NULL);
	dp_source_lines_finish(lines);
	cr_assert(!dp_source_lines_missed(lines));
	cr_assert(!dp_source_lines_missed(NULL));
	dp_source_lines_destroy(lines);
}
