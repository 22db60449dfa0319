/* SPDX-License-Identifier: MIT */
#include "output/elf/elf_unit.h"

#include <dwarf.h>

#define ABBREV 1

struct unit {
	uint32_t length; /* of what follows */
	uint16_t version;
	uint32_t abbrev_offset;
	uint8_t address_size;
	uint8_t abbrev;
	char producer[sizeof("GNU C 12.2.0")];
	char name[sizeof("dynprobe")];
	uint64_t low_pc, size;
} __attribute__((packed));

void dp_unit_put(struct dp_buf *info, uint64_t start, uint64_t size)
{
	const struct unit u = {
	        .length = sizeof(u) - sizeof(u.length),
	        .version = 4,
	        .address_size = sizeof(uint64_t),
	        .abbrev = ABBREV,
	        .producer = "GNU C 12.2.0",
	        .name = "dynprobe",
	        .low_pc = start,
	        .size = size,
	};
	dp_buf_put(info, &u, sizeof(u));
}

void dp_unit_put_abbrev(struct dp_buf *abbrev)
{
	static const uint8_t table[] = {
	        ABBREV,         DW_TAG_compile_unit, DW_CHILDREN_no, DW_AT_producer, DW_FORM_string, DW_AT_name, DW_FORM_string,
	        DW_AT_low_pc,   DW_FORM_addr,        DW_AT_high_pc,  DW_FORM_data8,  0,              0,          0,
	};
	dp_buf_put(abbrev, table, sizeof(table));
}
