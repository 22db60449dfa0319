/* SPDX-License-Identifier: MIT */
#include "probes/scope.h"
#include "base/cleanup.h"

#include <stdlib.h>

struct dp_scope {
	struct dp_image *image;
	struct dp_scope_at at;
};

struct dp_error *dp_scope_create(struct dp_image *image, const struct dp_scope_at *at, struct dp_scope **ret)
{
	struct dp_scope *s = malloc(sizeof(*s));
	if (!s)
		return dp_error(DP_TAG_NOMEM, "out of memory for a scope");
	*s = (struct dp_scope){.image = image, .at = *at};
	*ret = s;
	return NULL;
}

struct dp_scope *dp_scope_destroy(struct dp_scope *scope)
{
	free(scope);
	return NULL;
}

struct dp_error *dp_scope_check(const char *text)
{
	struct dp_expr *unused = NULL;
	DP_TRY(dp_expr_parse(text, &unused));
	dp_expr_destroy(unused);
	return NULL;
}

struct dp_error *dp_scope_expr(struct dp_scope *scope, const char *text, struct dp_expr **ret)
{
	DP_TRY(dp_expr_parse(text, ret));
	if (scope)
		dp_expr_bind(*ret, scope->at.site.addr);
	return NULL;
}

struct dp_error *dp_scope_fields(struct dp_scope *scope, const char *context, struct dp_fields *fields)
{
	(void)scope;
	return dp_fields_add(fields, context);
}

bool dp_scope_is_fixed(const char *context)
{
	(void)context;
	return true;
}
