/* SPDX-License-Identifier: MIT */
/* Instructions that are not run here, and why. Relocation copies all but the first group unchanged. */
#include "forms.h"

#include <string.h>

struct reason {
	const char *why;
	const char *const *names; /* of mnemonics, as Zydis spells them; a trailing * matches the rest */
};

static const char *const calls[] = {"sysenter", "sysret", "sysexit", "vmcall", "vmmcall", "vmfunc", NULL};
static const char *const random_results[] = {"rdtsc",  "rdtscp", "rdpmc", "rdpru", "rdrand", "rdseed", "rdpid", "cpuid",
                                             "xgetbv", "sgdt",   "sidt",  "str",   "sldt",   "smsw",   NULL};
static const char *const own_state[] = {"wrfsbase",    "wrgsbase",  "wrpkru",    "xrstor*", "lfs",  "lgs",   "lss",    "swapgs",
                                        "arch_prctl",  "ldtilecfg", "sttilecfg", "tile*",   "tdp*", "wrss*", "wruss*", "rstorssp",
                                        "saveprevssp", "setssbsy",  "clrssbsy",  "incssp*", "stui", "clui",  "uiret",  NULL};
static const char *const processor_state[] = {"xsave*", NULL};
static const char *const waits[] = {"umwait", "tpause", "mwait*", "monitor*", "umonitor", "hlt", NULL};
static const char *const bounds[] = {"bnd*", NULL};

static const struct reason reasons[] = {
        {"would call the kernel or a hypervisor with random arguments", calls},
        {"gives another result each time", random_results},
        {"changes what this process itself needs (segment bases, protection keys, tiles, shadow stack)", own_state},
        {"what it writes depends on what the processor knows to be in use", processor_state},
        {"waits", waits},
        {"bound registers are not among the state that is compared", bounds},
};

static bool matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);
	return pattern[n - 1] == '*' ? !strncmp(pattern, name, n - 1) : !strcmp(pattern, name);
}

/* The harness cannot restore segment registers. (iretq finds valid ones on the stack: tame_stack().) */
static bool loads_segment(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand)
{
	if (insn->mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		return false;
	if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && insn->mnemonic != ZYDIS_MNEMONIC_IRETQ)
		return true;
	for (int i = 0; i < insn->operand_count; i++)
		if (operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    ZydisRegisterGetClass(operand[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return true;
	return false;
}

const char *unfit(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand)
{
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		for (const char *const *pattern = reasons[i].names; *pattern; pattern++)
			if (matches(*pattern, name))
				return reasons[i].why;
	return loads_segment(insn, operand) ? "loads a segment register, which cannot be put back" : NULL;
}
