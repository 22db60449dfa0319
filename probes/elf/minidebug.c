/* SPDX-License-Identifier: MIT */
/* .gnu_debugdata ("mini debug info"): an xz-compressed ELF file with only a .symtab, inside a stripped file. */
#include "probes/elf/elf_file.h"

#include <lzma.h>
#include <stdlib.h>

/* Limits, because a few kilobytes may claim to uncompress to any size. */
#define MAX_UNPACKED (256U << 20)
#define MAX_MEMORY   (256U << 20)

/* Uncompresses everything into a growing buffer. */
static uint8_t *unpack(lzma_stream *stream, size_t *size)
{
	size_t capacity = 256 << 10;
	uint8_t *out = malloc(capacity);
	lzma_ret state = LZMA_OK;
	while (out && state == LZMA_OK) {
		stream->next_out = out + stream->total_out;
		stream->avail_out = capacity - stream->total_out;
		state = lzma_code(stream, LZMA_FINISH);
		if (state != LZMA_OK || stream->avail_out)
			continue;
		capacity *= 2;
		uint8_t *grown = capacity <= MAX_UNPACKED ? realloc(out, capacity) : NULL;
		if (!grown)
			free(out);
		out = grown;
	}
	*size = stream->total_out;
	if (state == LZMA_STREAM_END)
		return out;
	free(out);
	return NULL;
}

struct dp_elf *dp_minidebug_unpack(const struct dp_elf *elf, const char *name)
{
	GElf_Shdr shdr;
	struct dp_span s;
	struct dp_elf *inner = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	if (!dp_elf_section(elf, ".gnu_debugdata", 0, &shdr, &s) ||
	    lzma_stream_decoder(&stream, MAX_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
		return NULL;
	stream.next_in = s.bytes;
	stream.avail_in = s.size;
	size_t size;
	uint8_t *out = unpack(&stream, &size);
	lzma_end(&stream);
	if (out)
		dp_error_destroy(dp_elf_from_memory(out, size, name, &inner));
	return inner;
}
