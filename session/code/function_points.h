/* SPDX-License-Identifier: MIT */
/* The instructions and exits of one function, with the fragments that the compiler put elsewhere. */
#ifndef DP_SESSION_CODE_FUNCTION_POINTS_H
#define DP_SESSION_CODE_FUNCTION_POINTS_H

#include "session/code/code_view.h"
#include "trampoline/trampoline.h"

#define DP_FUNCTION_PARTS 8u

struct dp_function_points {
	struct dp_function part[DP_FUNCTION_PARTS]; /* [0] is the function */
	size_t nparts;
	struct dp_points points; /* without jumps to fragments, and to functions that never return */
};

/* DP_TAG_NO_SIZE if the function's end is unknown. */
struct dp_error *dp_function_points(struct dp_image *image, struct dp_code_view *view, const struct dp_function *f,
                                    struct dp_function_points *ret) DP_MUST_CHECK;
void dp_function_points_fini(struct dp_function_points *fp);
/* The part that contains `addr`; NULL if none does. */
const struct dp_function *dp_function_part(const struct dp_function_points *fp, uint64_t addr);

#endif
