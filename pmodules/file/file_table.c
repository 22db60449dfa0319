/* SPDX-License-Identifier: MIT */
#include "pmodules/file/file_table.h"

#define COUNT(a)        (sizeof(a) / sizeof(*(a)))
#define SIZE_OF(member) sizeof(((struct T *)0)->member)
#define ROW(n, k, m, json)                                                                                                       \
	.number = (n), .keep = DP_STORE_##k, .size = (uint8_t)SIZE_OF(m), .offset = offsetof(struct T, m), .name = (json)
#define RECORD(id, what, rows, l)                                                                                                \
	const struct dp_store_record dp_store_##id = {                                                                           \
	        .name = (what), .row = (rows), .n = COUNT(rows), .size = sizeof(struct T), .link = (l)}

static const char *const note_kinds[] = {"comment", "warning", "critical", "json", NULL};
static const char *const var_kinds[] = {"bottom", "ll",     "ull",  "flt",   "dbl",   "ldbl", "cflt",      "cdbl",
                                        "cldbl",  "string", "enum", "tuple", "array", "fn",   "reference", NULL};
static const char *const var_states[] = {"ok", "absent", "unreadable", NULL};
static const char *const var_places[] = {"local", "parameter", "global", "tls", "child", NULL};

#define T dp_snap_note
static const struct dp_store_row note_rows[] = {
        {ROW(1, ENUM, kind, "kind"), .always = true, .words = note_kinds},
        {ROW(2, TEXT, text, "text"), .always = true},
        {ROW(3, TEXT, module, "module")},
};
RECORD(note, "Note", note_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_pair
static const struct dp_store_row pair_rows[] = {
        {ROW(1, TEXT, key, "key")},
        {ROW(2, BOOL, is_int, "is_int")},
        {ROW(3, INT, number, "number")},
        {ROW(4, TEXT, text, "text")},
};
RECORD(pair, "Pair", pair_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_variable
static const struct dp_store_row variable_rows[] = {
        {ROW(1, TEXT, name, "name"), .always = true},
        {ROW(2, TEXT, type, "type"), .always = true},
        {ROW(3, TEXT, base_type, "base_type")},
        {ROW(4, ENUM, kind, "kind"), .always = true, .words = var_kinds},
        {ROW(5, ENUM, state, "state"), .words = var_states, .usual = DP_VAR_ABSENT},
        {ROW(6, ENUM, place, "place"), .always = true, .words = var_places},
        {ROW(7, TEXT_OR_NULL, why, "why")},
        {ROW(8, INT, index, "index"), .usual = -1},
        {ROW(9, HEX, address, "address")},
        {ROW(10, UINT, size, "size")},
        {ROW(11, NUMBER, number, "number")},
        {ROW(12, REAL, real, "real")},
        {ROW(13, REAL, imaginary, "imaginary")},
        {ROW(14, BOOL, is_string, "is_string")},
        {ROW(15, STRING, text, "text")},
        {ROW(16, BOOL, is_cut, "is_cut")},
        {ROW(17, BOOL, is_bool, "is_bool")},
        {ROW(18, BOOL, is_char, "is_char")},
        {ROW(19, BOOL, is_union, "is_union")},
        {ROW(20, BOOL, is_synthesized, "is_synthesized")},
        {ROW(21, BOOL, is_hidden, "is_hidden")},
        {ROW(22, BOOL, is_late, "is_late")},
        {ROW(23, BOOL, is_shared, "is_shared")},
        {ROW(24, UINT, bits, "bits")},
        {ROW(25, TEXT_OR_NULL, summary, "summary")},
        {ROW(26, TEXT, object, "object")},
        {ROW(27, TEXT, unit, "unit")},
        {ROW(28, LIST, notes, "notes"), .of = &dp_store_note},
        {ROW(29, UINT, more, "more")},
        {ROW(30, LIST, children, "children"), .of = &dp_store_variable},
        {ROW(31, TEXT_OR_NULL, module, "module")},
};
RECORD(variable, "Variable", variable_rows, DP_LINK_VARIABLE);
#undef T

#define T dp_snap_siginfo
static const struct dp_store_row siginfo_rows[] = {
        {ROW(1, INT, number, "number"), .always = true},
        {ROW(2, INT, code, "code")},
        {ROW(3, INT, pid, "pid")},
        {ROW(4, INT, uid, "uid")},
        {ROW(5, HEX, address, "address")},
        {ROW(6, BOOL, has_address, "has_address")},
        {ROW(7, BOOL, by_kill, "by_kill")},
        {ROW(8, TEXT, name, "name"), .always = true},
        {ROW(9, TEXT, reason, "reason")},
};
RECORD(siginfo, "Siginfo", siginfo_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_frame
static const struct dp_store_row frame_rows[] = {
        {ROW(1, HEX, pc, "pc"), .always = true},
        {ROW(2, HEX, sp, "sp")},
        {ROW(3, HEX, cfa, "cfa")},
        {ROW(4, TEXT_OR_NULL, symbol, "symbol")},
        {ROW(5, TEXT_OR_NULL, linkage, "linkage")},
        {ROW(6, UINT, offset, "offset")},
        {ROW(7, TEXT_OR_NULL, object, "object")},
        {ROW(8, TEXT_OR_NULL, path, "path")},
        {ROW(9, INT, line, "line")},
        {ROW(10, INT, decl_line, "decl_line")},
        {ROW(11, BOOL, line_resolved, "line_resolved")},
        {ROW(12, BOOL, is_inline, "is_inline")},
        {ROW(13, BOOL, is_guess, "is_guess")},
        {ROW(14, BOOL, is_signal, "is_signal")},
        {ROW(15, BOOL, is_fault, "is_fault")},
        {ROW(16, BOOL, is_synthesized, "is_synthesized")},
        {ROW(17, TEXT_OR_NULL, instruction, "instruction")},
        {ROW(18, FRAME_REGISTERS, registers, "registers")},
        {ROW(19, SUB, siginfo, "siginfo"), .of = &dp_store_siginfo},
        {ROW(20, TEXT_OR_NULL, original_symbol, "original_symbol")},
        {ROW(21, LIST, notes, "notes"), .of = &dp_store_note},
        {ROW(22, LIST, variables, "variables"), .always = true, .of = &dp_store_variable},
        {ROW(23, TEXT_OR_NULL, module, "module")},
        {ROW(24, BOOL, is_tail, "is_tail")},
        {ROW(25, BOOL, by_frame_pointer, "by_frame_pointer")},
};
RECORD(frame, "Frame", frame_rows, DP_LINK_FRAME);
#undef T

#define T dp_snap_kframe
static const struct dp_store_row kframe_rows[] = {
        {ROW(1, TEXT, symbol, "symbol"), .always = true},
};
RECORD(kframe, "KernelFrame", kframe_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_thread
static const struct dp_store_row thread_rows[] = {
        {ROW(1, INT, tid, "tid"), .always = true},
        {ROW(2, TEXT, name, "name"), .always = true},
        {ROW(3, CHAR, state, "state"), .always = true, .usual = '?'},
        {ROW(4, BOOL, is_fault, "is_fault")},
        {ROW(5, TEXT_OR_NULL, fault_reason, "fault_reason")},
        {ROW(6, TEXT_OR_NULL, unwind_end, "unwind_end")},
        {ROW(7, BOOL, has_registers, "has_registers")},
        {ROW(8, REGISTERS, registers, "registers")},
        {ROW(9, HEX, rflags, "rflags")},
        {ROW(10, HEX, fs_base, "fs_base")},
        {ROW(11, HEX, gs_base, "gs_base")},
        {ROW(12, HEX, orig_rax, "orig_rax")},
        {ROW(13, INT, syscall, "syscall"), .usual = -1},
        {ROW(14, TEXT_OR_NULL, syscall_text, "syscall_text")},
        {ROW(15, UINT, more_frames, "more_frames")},
        {ROW(16, LIST, frames, "frames"), .always = true, .of = &dp_store_frame},
        {ROW(17, LIST, kframes, "kernel_frames"), .of = &dp_store_kframe},
        {ROW(18, LIST, variables, "variables"), .of = &dp_store_variable},
        {ROW(19, LIST, notes, "notes"), .of = &dp_store_note},
};
RECORD(thread, "Thread", thread_rows, DP_LINK_THREAD);
#undef T

#define T dp_snap_map
static const struct dp_store_row map_rows[] = {
        {ROW(1, HEX, start, "start"), .always = true},
        {ROW(2, HEX, end, "end"), .always = true},
        {ROW(3, HEX, offset, "offset")},
        {ROW(4, UINT, inode, "inode")},
        {ROW(5, BOOL, read, "read")},
        {ROW(6, BOOL, write, "write")},
        {ROW(7, BOOL, exec, "exec")},
        {ROW(8, BOOL, shared, "shared")},
        {ROW(9, BOOL, is_guard, "is_guard")},
        {ROW(10, TEXT, path, "path"), .always = true},
};
RECORD(map, "Map", map_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_object
static const struct dp_store_row object_rows[] = {
        {ROW(1, TEXT, path, "path"), .always = true},
        {ROW(2, TEXT, build_id, "build_id")},
        {ROW(3, HEX, start, "start"), .always = true},
        {ROW(4, HEX, end, "end"), .always = true},
        {ROW(5, INT, bias, "bias")},
        {ROW(6, BOOL, has_debug, "has_debug")},
        {ROW(7, TEXT, name, "name")},
};
RECORD(object, "Object", object_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_file
static const struct dp_store_row file_rows[] = {
        {ROW(1, INT, fd, "fd"), .always = true},
        {ROW(2, TEXT, target, "target"), .always = true},
};
RECORD(file, "File", file_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_limit
static const struct dp_store_row limit_rows[] = {
        {ROW(1, TEXT, name, "name"), .always = true},
        {ROW(2, TEXT, soft, "soft"), .always = true},
        {ROW(3, TEXT, hard, "hard"), .always = true},
        {ROW(4, TEXT, unit, "unit")},
};
RECORD(limit, "Limit", limit_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_memory
static const struct dp_store_row memory_rows[] = {
        {ROW(1, HEX, address, "address"), .always = true},
        {ROW(2, BLOB, bytes, "size"), .count = offsetof(struct dp_snap_memory, size)},
};
RECORD(memory, "Memory", memory_rows, DP_LINK_NONE);
#undef T

#define T dp_snap_source
static const struct dp_store_row source_rows[] = {
        {ROW(1, TEXT, path, "path"), .always = true},
        {ROW(2, INT, first, "first"), .always = true},
        {ROW(3, TEXT, lines, "lines"), .always = true},
        {ROW(4, UINT, n, "n")},
};
RECORD(source, "Source", source_rows, DP_LINK_NONE);
#undef T

#define T    dp_snapshot
#define N(m) .count = offsetof(struct dp_snapshot, m)
static const struct dp_store_row snapshot_rows[] = {
        {ROW(1, ID, id, "id"), .always = true},
        {ROW(2, NUMBER, time_ns, "time_ns"), .always = true},
        {ROW(3, TEXT, dynprobe, "dynprobe"), .always = true},
        {ROW(4, TEXT, mode, "mode"), .always = true},
        {ROW(5, INT, pid, "pid"), .always = true},
        {ROW(6, TEXT, application, "application"), .always = true},
        {ROW(7, TEXT, exe, "exe")},
        {ROW(8, TEXTS, argv, "argv")},
        {ROW(9, TEXTS_OR_NULL, environ, "environ")},
        {ROW(10, CHAR, process_state, "process_state"), .usual = '?'},
        {ROW(11, TEXT, hostname, "hostname")},
        {ROW(12, TEXT, kernel, "kernel")},
        {ROW(13, UINT, pause_ns, "pause_ns")},
        {ROW(14, UINT, stop_ns, "stop_ns")},
        {ROW(15, UINT, read_ns, "read_ns")},
        {ROW(16, UINT, total_ns, "total_ns")},
        {ROW(17, UINT, rehearsal_ns, "rehearsal_ns")},
        {ROW(18, TEXT_OR_NULL, probe, "probe")},
        {ROW(19, TEXT_OR_NULL, condition, "condition")},
        {ROW(20, UINT, hit, "hit")},
        {ROW(21, LIST, attributes, "attributes"), .always = true, .of = &dp_store_pair},
        {ROW(22, WORDS, classifiers, "classifiers"), .always = true},
        {ROW(23, WORDS, tags, "tags")},
        {ROW(24, WORDS, truncations, "truncations")},
        {ROW(25, LIST, notes, "notes"), .of = &dp_store_note},
        {ROW(26, LIST, made_by, "made_by"), .of = &dp_store_pair},
        {ROW(27, INT, inner_pid, "inner_pid")},
        {ROW(28, TEXT, comm, "comm")},
        {ROW(40, LIST, threads, "threads"), .always = true, .of = &dp_store_thread},
        {ROW(50, LIST, globals, "globals"), .always = true, .of = &dp_store_variable},
        {ROW(60, ARRAY, maps, "maps"), N(nmaps), .of = &dp_store_map},
        {ROW(61, ARRAY, objects, "objects"), N(nobjects), .of = &dp_store_object},
        {ROW(62, ARRAY, files, "files"), N(nfiles), .of = &dp_store_file},
        {ROW(63, ARRAY, limits, "limits"), N(nlimits), .of = &dp_store_limit},
        {ROW(70, ARRAY, sources, "sources"), N(nsources), .of = &dp_store_source},
        {ROW(80, ARRAY, memory, "memory"), N(nmemory), .of = &dp_store_memory},
};
RECORD(snapshot, "Snapshot", snapshot_rows, DP_LINK_NONE);
#undef T

/* Memory is by far the largest section, and much of it compresses well even at level 1. */
const struct dp_store_section dp_store_section[] = {
        {DP_SECTION('H', 'E', 'A', 'D'), 1, 39, 3},  {DP_SECTION('T', 'H', 'R', 'D'), 40, 49, 1},
        {DP_SECTION('G', 'L', 'O', 'B'), 50, 59, 3}, {DP_SECTION('P', 'R', 'O', 'C'), 60, 69, 3},
        {DP_SECTION('S', 'R', 'C', 'E'), 70, 79, 3}, {DP_SECTION('M', 'E', 'M', 'O'), 80, 89, 1},
};
const size_t dp_store_nsections = COUNT(dp_store_section);
