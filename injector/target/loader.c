/* SPDX-License-Identifier: MIT */
/*
 * Loads the agent, an ELF file in the tool's read-only data. It has one loadable segment, no relocations and no writable data
 * (agent/check.sh makes sure), so loading is copying its bytes and looking up its symbols.
 */
#include "injector/target/target.h"

#include "agent/sink.h"
#include "agent/trap/trap.h"

#include <elf.h>
#include <string.h>

extern const uint8_t dp_agent_blob[], dp_agent_blob_end[];

static const Elf64_Shdr *section(const Elf64_Ehdr *ehdr, uint32_t type)
{
	const Elf64_Shdr *sh = (const void *)((const uint8_t *)ehdr + ehdr->e_shoff);
	for (int i = 0; i < ehdr->e_shnum; i++)
		if (sh[i].sh_type == type)
			return &sh[i];
	return NULL;
}

static uint64_t symbol(const Elf64_Ehdr *ehdr, const char *name)
{
	const uint8_t *file = (const uint8_t *)ehdr;
	const Elf64_Shdr *sh = (const void *)(file + ehdr->e_shoff), *tab = section(ehdr, SHT_SYMTAB);
	if (!tab)
		tab = section(ehdr, SHT_DYNSYM);
	if (!tab)
		return 0;
	const char *names = (const char *)file + sh[tab->sh_link].sh_offset;
	const Elf64_Sym *sym = (const void *)(file + tab->sh_offset);
	for (size_t i = 0; i < tab->sh_size / sizeof(*sym); i++)
		if (sym[i].st_shndx != SHN_UNDEF && !strcmp(names + sym[i].st_name, name))
			return sym[i].st_value;
	return 0;
}

static const Elf64_Phdr *text_segment(const Elf64_Ehdr *ehdr)
{
	const Elf64_Phdr *ph = (const void *)((const uint8_t *)ehdr + ehdr->e_phoff);
	for (int i = 0; i < ehdr->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X))
			return &ph[i];
	return NULL;
}

struct dp_error *dp_agent_image_load(struct dp_agent_image *ret)
{
	const Elf64_Ehdr *ehdr = (const void *)dp_agent_blob;
	const Elf64_Phdr *ph = text_segment(ehdr);
	if (!ph || ph->p_offset + ph->p_filesz > (size_t)(dp_agent_blob_end - dp_agent_blob))
		return dp_error(DP_TAG_INTERNAL, "the agent inside dynprobe has no text");
	uint64_t base = ph->p_vaddr;
	struct dp_agent_image image = {
	        .bytes = dp_agent_blob + ph->p_offset,
	        .size = ph->p_filesz,
	        .acquire = symbol(ehdr, DP_SYM_ACQUIRE) - base,
	        .read = symbol(ehdr, DP_SYM_READ) - base,
	        .string = symbol(ehdr, DP_SYM_STRING) - base,
	        .backtrace = symbol(ehdr, DP_SYM_BACKTRACE) - base,
	        .apart = symbol(ehdr, DP_SYM_APART) - base,
	        .park = symbol(ehdr, DP_SYM_PARK) - base,
	        .finish = symbol(ehdr, DP_SYM_FINISH) - base,
	        .cells = symbol(ehdr, DP_SYM_CELLS) - base,
	        .keyed = symbol(ehdr, DP_SYM_KEYED) - base,
	        .stacked = symbol(ehdr, DP_SYM_STACKED) - base,
	        .stacked_apart = symbol(ehdr, DP_SYM_STACKED_APART) - base,
	        .stacked_done = symbol(ehdr, DP_SYM_STACKED_DONE) - base,
	        .decimal = symbol(ehdr, DP_SYM_DECIMAL) - base,
	        .ask = symbol(ehdr, DP_SYM_ASK) - base,
	        .call = symbol(ehdr, DP_SYM_CALL) - base,
	        .loader = symbol(ehdr, DP_SYM_SINK_LOADER) - base,
	        .loaded = symbol(ehdr, DP_SYM_LOADED) - base,
	        .loaded_state = symbol(ehdr, DP_SYM_LOADED_STATE) - base,
	        .trap = symbol(ehdr, DP_SYM_TRAP) - base,
	        .trap_restorer = symbol(ehdr, DP_SYM_TRAP_RESTORER) - base,
	        .trap_syscall = symbol(ehdr, DP_SYM_TRAP_SYSCALL) - base,
	        .trap_state = symbol(ehdr, DP_SYM_TRAP_STATE) - base,
	        .trap_called = symbol(ehdr, DP_SYM_TRAP_CALLED) - base,
	};
	const uint64_t entry[] = {
	        image.cells,      image.keyed,       image.stacked, image.stacked_done, image.loaded,        image.loaded_state,
	        image.acquire,    image.read,        image.string,  image.backtrace,    image.apart,         image.finish,
	        image.ask,        image.call,        image.loader,  image.trap,         image.trap_restorer, image.trap_syscall,
	        image.trap_state, image.trap_called, image.park,    image.stacked_apart, image.decimal};
	for (size_t i = 0; i < sizeof(entry) / sizeof(*entry); i++)
		if (entry[i] >= image.size)
			return dp_error(DP_TAG_INTERNAL, "the agent inside dynprobe lacks entry point %zu", i);
	*ret = image;
	return NULL;
}
