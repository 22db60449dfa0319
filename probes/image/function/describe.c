/* SPDX-License-Identifier: MIT */
/* Formats addresses as text. */
#include "probes/image/function/describe.h"
#include "probes/image/module.h"

bool dp_image_function_at(struct dp_image *image, dp_addr addr, struct dp_function *ret)
{
	struct dp_module *m = dp_image_module_at(image, addr);
	return m && dp_module_function_at(m, addr, ret);
}

const char *dp_function_unnamed(const struct dp_function *f, char buf[static DP_UNNAMED_MAX])
{
	snprintf(buf, DP_UNNAMED_MAX, "func@0x%llx", (unsigned long long)dp_module_vaddr(f->module, f->start));
	return buf;
}

static int describe(struct dp_image *image, dp_addr addr, bool readable, char *buf, size_t size)
{
	struct dp_function f;
	struct dp_module *m = dp_image_module_at(image, addr);
	if (!m)
		return snprintf(buf, size, "0x%llx", (unsigned long long)addr.v);
	if (!dp_module_function_at(m, addr, &f))
		return snprintf(buf, size, "[%s]+0x%llx", dp_module_shown(m), (unsigned long long)dp_module_vaddr(m, addr));
	char unnamed[DP_UNNAMED_MAX];
	const char *name = !*f.name ? dp_function_unnamed(&f, unnamed) : readable ? dp_function_readable(&f) : f.name;
	unsigned long long offset = addr.v - f.start.v;
	if (!f.size)
		return snprintf(buf, size, "%s+0x%llx [%s]", name, offset, dp_module_shown(m));
	return snprintf(buf, size, "%s+0x%llx/0x%llx [%s]", name, offset, (unsigned long long)f.size, dp_module_shown(m));
}

int dp_image_describe(struct dp_image *image, dp_addr addr, char *buf, size_t size)
{
	return describe(image, addr, false, buf, size);
}

int dp_image_describe_readable(struct dp_image *image, dp_addr addr, char *buf, size_t size)
{
	return describe(image, addr, true, buf, size);
}
