/* SPDX-License-Identifier: MIT */
#include "probes/expr/scope/scope.h"
#include "probes/probes.h"

#include <stdlib.h>

struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret)
{
	return dp_scope_expr(NULL, text, ret);
}

struct dp_expr *dp_expr_destroy(struct dp_expr *expr)
{
	if (!expr)
		return NULL;
	dp_expr_destroy(expr->a);
	dp_expr_destroy(expr->b);
	dp_expr_destroy(expr->c);
	free(expr->text);
	free(expr);
	return NULL;
}
