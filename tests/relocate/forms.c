/* SPDX-License-Identifier: MIT */
#include "forms.h"

#include "probes/elf/elf_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH UINT64_C(0x9e3779b97f4a7c15)

bool zydis_decode(const uint8_t *bytes, size_t n, ZydisDecodedInstruction *insn, ZydisDecodedOperand *operand)
{
	static ZydisDecoder decoder;
	static bool ready;
	if (!ready)
		ready = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
	return ready && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, insn, operand));
}

/* ---- forms -------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t key, uint64_t value)
{
	key = (key ^ value) * HASH;
	return key ^ key >> 29;
}

/* Classifies base registers as far as relocation may care. */
static uint64_t kind_of(ZydisRegister r)
{
	switch (r) {
	case ZYDIS_REGISTER_NONE:
		return 0;
	case ZYDIS_REGISTER_RIP:
	case ZYDIS_REGISTER_EIP:
		return 1;
	case ZYDIS_REGISTER_RSP:
	case ZYDIS_REGISTER_ESP:
		return 2;
	default:
		return 3;
	}
}

static uint64_t key_of(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operand)
{
	uint64_t key = mix(in->mnemonic, (uint64_t)in->encoding << 32 | (uint64_t)in->opcode_map << 16 | in->opcode);
	key = mix(key, in->attributes);
	key = mix(key, (uint64_t)in->operand_width << 32 | (uint64_t)in->address_width << 16 | in->avx.vector_length);
	key = mix(key, (uint64_t)in->raw.disp.size << 8 | in->raw.imm[0].size);
	for (int i = 0; i < in->operand_count; i++) {
		const ZydisDecodedOperand *o = &operand[i];
		key = mix(key, (uint64_t)o->type << 32 | (uint64_t)o->encoding << 16 | o->size);
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY)
			key = mix(key, kind_of(o->mem.base) << 16 | kind_of(o->mem.index) << 8 | (uint64_t)o->mem.segment);
		else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
			key = mix(key, kind_of(o->reg.value));
	}
	return key ? key : 1;
}

static bool grow(struct forms *forms)
{
	struct form *old = forms->slot;
	const size_t oldcap = forms->cap, cap = oldcap ? 2 * oldcap : 4096;
	struct form *slot = calloc(cap, sizeof(*slot));
	if (!slot)
		return false;
	for (size_t i = 0; i < oldcap; i++) {
		size_t at = old[i].key % cap;
		if (!old[i].key)
			continue;
		while (slot[at].key)
			at = (at + 1) % cap;
		slot[at] = old[i];
	}
	free(old);
	forms->slot = slot;
	forms->cap = cap;
	return true;
}

static bool add(struct forms *forms, uint64_t key, const uint8_t *bytes, size_t len)
{
	if (2 * forms->n >= forms->cap && !grow(forms))
		return false;
	size_t at = key % forms->cap;
	while (forms->slot[at].key && forms->slot[at].key != key)
		at = (at + 1) % forms->cap;
	struct form *f = &forms->slot[at];
	forms->n += !f->key;
	f->key = key;
	/* Keeps the first samples, then replaces them ever less often: the samples come from all over the file. */
	uint64_t seen = f->seen++, place = seen < FORM_SAMPLES ? seen : seen * HASH % (seen + 1);
	if (place >= FORM_SAMPLES)
		return true;
	memset(f->bytes[place], 0, DP_INSN_MAX);
	memcpy(f->bytes[place], bytes, len);
	f->nsamples = (uint8_t)(seen < FORM_SAMPLES ? seen + 1 : FORM_SAMPLES);
	return true;
}

static bool add_code(struct forms *forms, const uint8_t *bytes, size_t n)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	for (size_t at = 0; at < n;) {
		if (!zydis_decode(bytes + at, n - at, &in, operand)) {
			at++;
			continue;
		}
		forms->instructions++;
		if (!add(forms, key_of(&in, operand), bytes + at, in.length))
			return false;
		at += in.length;
	}
	return true;
}

bool forms_add_file(struct forms *forms, const char *path)
{
	struct dp_elf *elf = NULL;
	bool ok = true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct dp_error *err = fd < 0 ? dp_error_sys(DP_TAG_SYS, "%s", path) : dp_elf_open(fd, path, &elf);
	if (fd >= 0)
		close(fd);
	if (err) {
		dp_error_print(err, stderr);
		dp_error_destroy(err);
		return false;
	}
	for (uint32_t i = 1; i < elf->ehdr.e_shnum && ok; i++) {
		GElf_Shdr shdr;
		struct dp_span span;
		if (dp_elf_section_at(elf, i, &shdr, &span) && (shdr.sh_flags & SHF_EXECINSTR) && shdr.sh_type == SHT_PROGBITS)
			ok = add_code(forms, span.bytes, span.size);
	}
	dp_elf_destroy(elf);
	return ok;
}

void forms_fini(struct forms *forms)
{
	free(forms->slot);
	*forms = (struct forms){0};
}

/* ---- random encodings --------------------------------------------------------------------------------------------------- */

static size_t random_prefixes(uint64_t *seed, uint8_t *bytes)
{
	static const uint8_t prefix[] = {0x66, 0xf2, 0xf3, 0xf0, 0x2e, 0x3e, 0x65, 0x67, 0x66, 0x26};
	size_t n = 0;
	for (uint64_t more = random_next(seed) % 8; more < 3 && n < 3; more = random_next(seed) % 8)
		bytes[n++] = prefix[random_next(seed) % sizeof(prefix)];
	return n;
}

void random_encoding(uint64_t *seed, uint8_t bytes[static DP_INSN_MAX])
{
	size_t n;
	for (int i = 0; i < DP_INSN_MAX; i++)
		bytes[i] = (uint8_t)(random_next(seed) >> 24);
	const uint64_t kind = random_next(seed) % 16;
	n = kind < 12 || random_next(seed) % 8 == 0 ? random_prefixes(seed, bytes) : 0;
	if (kind < 12 && random_next(seed) % 2)
		bytes[n++] = 0x40 | (random_next(seed) >> 20 & 0xf); /* rex */
	if (kind >= 5 && kind < 12)
		bytes[n++] = 0x0f;
	if (kind == 10)
		bytes[n++] = 0x38;
	if (kind == 11)
		bytes[n++] = 0x3a;
	if (kind >= 12 && kind < 14) {
		bytes[n] = kind == 12 ? 0xc5 : 0xc4;
		if (kind == 13)
			bytes[n + 1] = (uint8_t)((bytes[n + 1] & 0xe0) | (1 + random_next(seed) % 3));
		n += kind == 12 ? 2 : 3;
	}
	if (kind >= 14) { /* evex: reserved bits have their required values */
		bytes[n] = 0x62;
		bytes[n + 1] = (uint8_t)((bytes[n + 1] & 0xf0) | (1 + random_next(seed) % 3));
		bytes[n + 2] |= 0x04;
		n += 4;
	}
	/* One in eight operands is relative to rip. */
	if (random_next(seed) % 8 == 0 && n + 1 < DP_INSN_MAX)
		bytes[n + 1] = (uint8_t)((bytes[n + 1] & 0x38) | 0x05);
}
