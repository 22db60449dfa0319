/* SPDX-License-Identifier: MIT */
#include "helper_text.h"

#include "trampoline/code/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT UINT64_C(0x401000)

/* endbr64; push %rbp; mov %rsp,%rbp; movl $0,-4(%rbp); ret */
static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xc7, 0x45, 0xfc, 0, 0, 0, 0, 0xc3};

static enum dp_tag check(const struct dp_text *text, uint64_t addr, char *message, size_t size)
{
	struct dp_error *err = dp_text_check_boundary(text, addr);
	enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	snprintf(message, size, "%s", err ? err->message : "");
	dp_error_destroy(err);
	return tag;
}

Test(text, every_boundary_is_accepted_and_everything_else_is_DP_NOT_BOUNDARY)
{
	static const bool boundary[sizeof(code)] = {[0] = true, [4] = true, [5] = true, [8] = true, [15] = true};
	struct helper_module m;
	char message[400];
	helper_code(&m, AT, code, sizeof(code));
	for (size_t i = 0; i < sizeof(code); i++)
		cr_expect_eq(check(&m.text, AT + i, message, sizeof(message)), boundary[i] ? DP_TAG_COUNT : DP_TAG_NOT_BOUNDARY,
		             "+%zu: %s", i, message);
}

Test(text, DP_NOT_BOUNDARY_names_the_neighbours)
{
	struct helper_module m;
	char message[400];
	helper_code(&m, AT, code, sizeof(code));
	cr_assert_eq(check(&m.text, AT + 10, message, sizeof(message)), DP_TAG_NOT_BOUNDARY);
	cr_expect(strstr(message, "0x401008 (+0x8)") && strstr(message, "0x40100f (+0xf)"), "%s", message);
}

Test(text, without_a_function_only_decodability_counts)
{
	struct helper_module m;
	char message[400];
	helper_code(&m, AT, code, sizeof(code));
	m.text.function = m.text.size = 0;
	cr_expect_eq(check(&m.text, AT + 6, message, sizeof(message)), DP_TAG_COUNT, "%s", message);
}

Test(text, DP_NOT_CODE_outside_of_executable_segments)
{
	struct helper_module m;
	char message[400];
	helper_code(&m, AT, code, sizeof(code));
	helper_add(&m, AT + 0x1000, code, sizeof(code));
	cr_expect_eq(check(&m.text, AT + sizeof(code), message, sizeof(message)), DP_TAG_NOT_CODE);
	cr_expect_eq(check(&m.text, AT + 0x1000, message, sizeof(message)), DP_TAG_NOT_CODE);
}

Test(text, endbr64_is_recognised_and_not_read_past_the_end)
{
	struct helper_module m;
	helper_code(&m, AT, code, sizeof(code));
	cr_expect_eq(dp_text_endbr(&m.text, AT), 4);
	cr_expect_eq(dp_text_endbr(&m.text, AT + 4), 0);
	helper_code(&m, AT, code, 3);
	cr_expect_eq(dp_text_endbr(&m.text, AT), 0);
}
