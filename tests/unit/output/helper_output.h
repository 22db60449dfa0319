/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the writers: classes, payloads, temporary directories, commands, and a fake image. */
#ifndef DP_TESTS_OUTPUT_HELPER_H
#define DP_TESTS_OUTPUT_HELPER_H

#include "base/buf.h"
#include "output/output.h"

/* The field table of these contexts (a NULL-terminated list); the test fails if one is wrong. */
struct dp_fields make_fields(const char *const *contexts);
/* Fails the test if `err` is not NULL, and prints it. */
void must(struct dp_error *err);

/* Append parts of payloads. */
void put_u64(struct dp_buf *b, uint64_t v);
void put_u32(struct dp_buf *b, uint32_t v);
void put_u8(struct dp_buf *b, uint8_t v);
void put_text(struct dp_buf *b, const char *s); /* with its NUL */

/* An event of class 0, thread 101 of process 100, named "worker". */
struct dp_event make_event(uint64_t ns, const struct dp_buf *payload);

/* A new directory below /tmp, malloc'ed; remove_tree() removes it with its contents. */
char *make_dir(void);
void remove_tree(char *dir);
/* Runs a shell command and returns what it wrote to both streams (malloc'ed); exit status in `status`. */
char *run(int *status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Functions of the made-up image: caller [0x1000, 0x1010), callee [0x1010, 0x1030), __restore_rt [0x1030, 0x1040), all in
 * module "prog".
 */
extern struct dp_image *const made_up_image;

#endif
