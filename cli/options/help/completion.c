/* SPDX-License-Identifier: MIT */
#include "cli/options/options_table.h"

static void complete_options(enum dp_verb verb, FILE *to)
{
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], verb))
			fprintf(to, "--%s ", dp_option_rows[i].name);
}

/* After a verb its options; without one the verbs and the options of a run. */
void dp_options_completion(FILE *to)
{
	fputs("_dynprobe() {\n\tlocal words\n\tcase \"${COMP_WORDS[1]}\" in\n", to);
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++) {
		fprintf(to, "\t%s) words=\"", dp_verb_word((enum dp_verb)i));
		complete_options((enum dp_verb)i, to);
		fputs("\" ;;\n", to);
	}
	fputs("\texplain) words=\"--all", to);
	for (int i = 0; i < DP_TAG_COUNT; i++)
		fprintf(to, " %s", dp_tag_name((enum dp_tag)i));
	fputs("\" ;;\n\t*) words=\"", to);
	complete_options(DP_VERB_RUN, to);
	fputs("\" ;;\n\tesac\n\t[ \"$COMP_CWORD\" -gt 1 ] || words=\"$words", to);
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++)
		fprintf(to, " %s", dp_verb_word((enum dp_verb)i));
	fputs(" explain completion\"\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
	      "}\n"
	      "complete -o default -F _dynprobe dynprobe\n",
	      to);
}
