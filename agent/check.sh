#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks an agent before it is embedded: check.sh AGENT.SO
# A fault in the agent would harm the target, and could not be repaired there.
set -u
agent=$1
status=0
refuse() {
	echo "agent: $1" >&2
	[ -n "${2:-}" ] && echo "$2" | head -5 | sed 's/^/    /' >&2
	status=1
}

segments=$(readelf -lW "$agent" | awk '$1 == "LOAD"')
[ "$(echo "$segments" | wc -l)" = 1 ] || refuse "not exactly one PT_LOAD segment" "$segments"
echo "$segments" | awk '{ exit !($3 == "0x0000000000000000" && $5 == $6 && $7 == "R" && $8 == "E") }' ||
	refuse "the segment is not r-x at address 0 with all its bytes in the file" "$segments"

# .data and .bss (agent.lds collects everything writable there, the got and init_array too)
data=$(readelf -SW "$agent" | sed 's/^ *\[ *[0-9]*\] *//' | awk '($1 == ".data" || $1 == ".bss") && $5 !~ /^0+$/')
[ -z "$data" ] || refuse "writable data" "$data"
other=$(readelf -SW "$agent" | sed 's/^ *\[ *[0-9]*\] *//' | awk '$7 ~ /A/ && $7 ~ /W/ && $1 != ".dynamic" && $5 !~ /^0+$/')
[ -z "$other" ] || [ "$other" = "$data" ] || refuse "a writable section" "$other"

relocs=$(readelf -rW "$agent" | grep R_X86_64)
[ -z "$relocs" ] || refuse "relocations (a pointer in a constant table?)" "$relocs"
undefined=$(nm -u "$agent"; nm -D -u "$agent")
[ -z "$undefined" ] || refuse "undefined symbols" "$undefined"
for name in dp_agent_decimal dp_thunk_acquire dp_thunk_ask dp_thunk_cells dp_thunk_keyed dp_agent_stacked dp_agent_stacked_apart dp_agent_stacked_done dp_agent_read dp_agent_string dp_agent_backtrace dp_agent_backtrace_apart dp_agent_park dp_agent_finish dp_sink_loader dp_call_entry \
	dp_agent_trap dp_agent_trap_restorer dp_agent_trap_syscall dp_agent_trap_state dp_agent_trap_called \
	dp_agent_loaded dp_agent_loaded_state; do
	nm -D --defined-only "$agent" | grep -q " [TR] $name\$" || refuse "entry point $name is not exported"
done
exported=$(nm -D --defined-only "$agent" | awk '{ print $3 }' | grep -v -E '^(dp_thunk_(acquire|ask|cells|keyed)|dp_agent_(decimal|stacked|stacked_apart|stacked_done|read|string|backtrace|backtrace_apart|park|finish|trap|trap_restorer|trap_syscall|trap_state|trap_called|loaded|loaded_state)|dp_sink_loader|dp_call_entry)$')
[ -z "$exported" ] || refuse "exported, but no entry point" "$exported"

all=$(objdump -d --no-show-raw-insn "$agent" | grep -E '^ *[0-9a-f]+:|^[0-9a-f]+ <')
[ -n "$all" ] || refuse "no disassembly"
# dp_call_entry is not used by hits: it saves a borrowed thread's vector state, sets it to what C expects, and restores it.
code=$(echo "$all" | awk '/^[0-9a-f]+ </ { call = /<dp_call_entry>/; next } {
	if (!call || $2 !~ /^(xsavec64|xsave64|xrstor64|fxsave64|fxrstor64|fninit|ldmxcsr)$/) print }')
deny() {
	found=$(echo "$code" | grep -E "$2")
	[ -z "$found" ] || refuse "$1" "$found"
}
deny "vector, mask or MMX registers (a hit saves general registers only)" '%([xyz]mm[0-9]|mm[0-7]|k[0-7])'
deny "x87" "$(printf ':\t')(f[a-z0-9]+|emms)( |\$)|%st"
deny "vector or extended state" "$(printf ':\t')(xsave|xrstor|ldmxcsr|stmxcsr|vzero|tile|v[a-z]+ )"
deny "string instructions (the direction flag may be set)" "$(printf ':\t')(rep[nez]* |(movs|stos|lods|cmps|scas|ins|outs)[bwlq]? .*[(:]%[er]?[sd]i\\))|(cld|std)\$"
deny "instructions that not every machine or kernel supports" "$(printf ':\t')(rdfsbase|wrfsbase|rdgsbase|wrgsbase|rdpid|cpuid|xgetbv|xbegin|rdrand)"
deny "a way into the kernel other than syscall" "$(printf ':\t')(int[0-9]* |sysenter|int3)"
deny "%gs" '%gs:'
deny "undefined code" '\(bad\)|ud2'
exit $status
