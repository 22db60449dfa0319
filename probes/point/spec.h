/* SPDX-License-Identifier: MIT */
/* A spec: the text by which a user names places, in its parts. */
#ifndef DP_PROBES_POINT_SPEC_H
#define DP_PROBES_POINT_SPEC_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/*
 * SPEC := [module '!'] (symbol ['+' offset] | address) [':' ('entry' | 'return' | '*')], or DTrace's spelling
 * pid$target:module:function:name, where empty parts match anything and an offset is hexadecimal without 0x; pid123 names the
 * process, pid* every process. Numbers are octal (0...), decimal or hexadecimal (0x...). Module and symbol may be fnmatch(3)
 * patterns.
 *
 * Instead of symbol and offset: FILE:LINE, FUNCTION:LINE (relative to the function's own line), FUNCTION@FILE,
 * usdt:PROVIDER:MARKER. The word after an @ is a file if it has a slash or a source file's suffix, else a symbol version or
 * `plt`.
 */
enum dp_point {
	DP_POINT_PLACE,  /* as written: the symbol's address plus the offset */
	DP_POINT_ENTRY,  /* the function's entry, after an endbr64 */
	DP_POINT_RETURN, /* every ret and every tail jump */
	DP_POINT_ALL,    /* entry, every instruction, every return */
};
/*
 * Where a selected place is. It has no pointers, because a target's image may be read again between selecting and resolving: it
 * is valid in the image that has the module with this id. In any other image, of this process or of another, the place is found
 * again by the spec's module, symbol and value; a probe's build_id says which build of the module is needed.
 */
struct dp_selected_at {
	uint64_t module;         /* id of struct dp_module; 0: not known */
	uint64_t function, size; /* the function's address in the file; with a symbol its bytes (0: unknown) */
};
struct dp_spec {
	char *text;     /* as typed; of a selected place: for display and the manifest */
	char *module;   /* NULL if not given; may be a pattern */
	char *symbol;   /* NULL for an address */
	uint64_t value; /* the address, or the offset from the symbol (0 if not given) */
	bool has_offset;
	enum dp_point point;
	uint64_t pid; /* from pid123:..., else 0 */
	bool every;   /* pid*:... */
	/* Source lines, files and markers, handled by dp_image_select(). `symbol` is then the text after the module. */
	char *file;     /* FILE:LINE, FUNCTION@FILE; the last parts of a path */
	char *function; /* FUNCTION@FILE, FUNCTION:LINE */
	uint32_t line;  /* in the file, or relative to the function's own line */
	bool has_line;
	char *provider, *marker;  /* usdt:PROVIDER:MARKER; may be patterns */
	char *call;               /* syscall:NAME, may be a pattern; `point` ENTRY or RETURN restricts it. Only cli/ expands it */
	struct dp_selected_at at; /* dp_image_spec_of() */
};
struct dp_error *dp_spec_parse(const char *text, struct dp_spec *ret) DP_MUST_CHECK;
/* Parses the argument of --usdt: usdt:PROVIDER:NAME or PROVIDER:NAME, optionally with module! before it. */
struct dp_error *dp_spec_parse_usdt(const char *text, struct dp_spec *ret) DP_MUST_CHECK;
/* Parses the argument of --syscall: NAME or a pattern, optionally with module! before it and :entry or :exit after it. */
struct dp_error *dp_spec_parse_call(const char *text, struct dp_spec *ret) DP_MUST_CHECK;
struct dp_error *dp_spec_copy(const struct dp_spec *from, struct dp_spec *ret) DP_MUST_CHECK;
void dp_spec_fini(struct dp_spec *spec);
/* True if the text contains one of fnmatch's special characters. False for NULL. */
bool dp_spec_is_pattern(const char *text);
/* True for a line, a function of a file, or a marker: places that a symbol's name cannot express. */
bool dp_spec_is_source(const struct dp_spec *spec);
/* True if the spec may name more than one place. Use dp_image_select() then. */
bool dp_spec_selects(const struct dp_spec *spec);
/* True if the spec means all that it matches (a pattern, FUNCTION:*), false if the user named a place. */
bool dp_spec_has_pattern(const struct dp_spec *spec);

#endif
