/* SPDX-License-Identifier: MIT */
#include "output/events/frames.h"

#include "agent/abi.h"
#include "probes/image/function/generated.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A signal handler returns to the start of __restore_rt, and the pc of the frame that it interrupted is exact. */
bool dp_frame_is_signal_return(struct dp_image *image, uint64_t pc)
{
	struct dp_function f;
	const struct dp_code_name *known = dp_image_code_name(image, pc, false);
	if (known)
		return known->signal_return;
	return dp_image_function_at(image, dp_addr_of(pc), &f) && !strcmp(f.name, "__restore_rt");
}

/* Generated code, by the process's own map of names. */
static bool describe_generated(struct dp_image *image, uint64_t pc, bool exact, char text[DP_FRAME_TEXT])
{
	struct dp_perf_name n;
	const char *file;
	if (!dp_image_generated_at(image, dp_addr_of(pc - !exact), &n, &file))
		return false;
	snprintf(text, DP_FRAME_TEXT, "%s+0x%" PRIx64 "/0x%" PRIx64 " [%s]", n.name, pc - n.start, n.size, file);
	return true;
}

void dp_frame_describe(struct dp_image *image, uint64_t pc, bool exact, bool readable, char text[DP_FRAME_TEXT])
{
	struct dp_function f;
	const struct dp_code_name *known = dp_image_code_name(image, pc, exact);
	if (known) {
		snprintf(text, DP_FRAME_TEXT, "%s", readable ? known->readable : known->symbol);
		return;
	}
	bool call_ends_function = !exact && pc && dp_image_function_at(image, dp_addr_of(pc - 1), &f) && f.size &&
	                          pc == f.start.v + f.size && f.name[0] && f.module;
	if (call_ends_function)
		snprintf(text, DP_FRAME_TEXT, "%s+0x%" PRIx64 "/0x%" PRIx64 " [%s]", readable ? dp_function_readable(&f) : f.name,
		         pc - f.start.v, f.size, dp_module_shown(f.module));
	else if (describe_generated(image, pc, exact, text))
		return;
	else if (readable)
		dp_image_describe_readable(image, dp_addr_of(pc), text, DP_FRAME_TEXT);
	else
		dp_image_describe(image, dp_addr_of(pc), text, DP_FRAME_TEXT);
}

void dp_frame_function(struct dp_image *image, uint64_t pc, bool exact, char text[DP_FRAME_TEXT])
{
	struct dp_function f;
	struct dp_perf_name n;
	const char *file;
	const dp_addr at = dp_addr_of(pc - !exact);
	char unnamed[DP_UNNAMED_MAX];
	const struct dp_code_name *known = dp_image_code_name(image, pc, exact);
	if (known)
		snprintf(text, DP_FRAME_TEXT, "%s", known->function);
	else if (dp_image_function_at(image, at, &f))
		snprintf(text, DP_FRAME_TEXT, "%s", *f.name ? dp_function_readable(&f) : dp_function_unnamed(&f, unnamed));
	else if (dp_image_generated_at(image, at, &n, &file))
		snprintf(text, DP_FRAME_TEXT, "%s", n.name);
	else
		dp_image_describe(image, dp_addr_of(pc), text, DP_FRAME_TEXT);
}

bool dp_frame_begins_thread(struct dp_image *image, uint64_t pc)
{
	static const char *const first[] = {"_start", "clone", "clone3", "__clone", "__clone3", "_dl_start_user"};
	struct dp_function f;
	const struct dp_code_name *known = dp_image_code_name(image, pc, false);
	if (known)
		return known->begins_thread;
	if (!dp_image_function_at(image, dp_addr_of(pc - 1), &f))
		return false;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		if (!strcmp(f.name, first[i]))
			return true;
	return false;
}

bool dp_frames_cut(struct dp_image *image, uint64_t pc, size_t n, size_t most)
{
	if (!n || n < most)
		return false;
	return !image || !dp_frame_begins_thread(image, dp_frame_pc(pc));
}

/* The name of a frame, formed in `text` unless it is known already. */
static const char *name_of(struct dp_image *image, uint64_t pc, bool exact, bool readable, char text[DP_FRAME_TEXT])
{
	const struct dp_code_name *known = dp_image_code_name(image, pc, exact);
	if (known)
		return readable ? known->readable : known->symbol;
	dp_frame_describe(image, pc, exact, readable, text);
	return text;
}

void dp_frames_each(struct dp_image *image, const struct dp_field_value *backtrace, bool readable,
                    void (*each)(size_t i, const struct dp_frame_shown *frame, void *data), void *data)
{
	bool exact = true; /* the site itself is not a return address */
	for (size_t i = 0; i < backtrace->n; i++) {
		char text[DP_FRAME_TEXT];
		const char *name = "";
		uint64_t word;
		memcpy(&word, backtrace->bytes + i * sizeof(word), sizeof(word));
		const uint64_t pc = dp_frame_pc(word);
		if (!pc) {
			name = DP_FRAMES_CUT;
		} else if (image) {
			bool signal = i && dp_frame_is_signal_return(image, pc);
			name = name_of(image, pc, exact || signal, readable, text);
			exact = signal;
		}
		each(i, &(struct dp_frame_shown){pc, name, dp_frame_is_by_pointer(word)}, data);
	}
}
