/* SPDX-License-Identifier: MIT */
#include "cli/commands/completion/completion.h"

#include <string.h>

/* Bash parts words at : and =, so they are joined again; what it has cut off before the cursor's part must not be repeated. */
static const char bash[] = "_dynprobe() {\n"
                           "\tlocal -a words=(\"${COMP_WORDS[0]}\")\n"
                           "\tlocal i word last='' found cut\n"
                           "\tfor ((i = 1; i <= COMP_CWORD; i++)); do\n"
                           "\t\tword=${COMP_WORDS[i]}\n"
                           "\t\tif ((i > 1)) && [[ $word == [:=]* || $last == *[:=] ]]; then\n"
                           "\t\t\twords[${#words[@]} - 1]+=$word\n"
                           "\t\telse\n"
                           "\t\t\twords+=(\"$word\")\n"
                           "\t\tfi\n"
                           "\t\tlast=$word\n"
                           "\tdone\n"
                           "\tword=${words[${#words[@]} - 1]}\n"
                           "\tcut=${word%\"${word##*[:=]}\"}\n"
                           "\tCOMPREPLY=()\n"
                           "\twhile IFS=$'\\t' read -r found _; do\n"
                           "\t\tCOMPREPLY+=(\"${found#\"$cut\"}\")\n"
                           "\tdone < <(\"${words[0]}\" completion --words \"${words[@]:1}\" 2>/dev/null)\n"
                           "\t[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null\n"
                           "}\n"
                           "complete -o default -F _dynprobe dynprobe\n";

static const char zsh[] =
        "#compdef dynprobe\n"
        "_dynprobe() {\n"
        "\tlocal -a found shown\n"
        "\tfound=(\"${(@f)$(\"${(Q)words[1]}\" completion --words \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
        "\tfound=(\"${(@)found:#}\")\n"
        "\tif (( ! $#found )); then\n"
        "\t\t_files\n"
        "\t\treturn\n"
        "\tfi\n"
        "\tshown=(\"${(@)found//:/\\\\:}\")\n"
        "\tshown=(\"${(@)shown/$'\\t'/:}\")\n"
        "\t_describe dynprobe shown\n"
        "}\n"
        "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
        "\t_dynprobe \"$@\"\n"
        "else\n"
        "\tcompdef _dynprobe dynprobe\n"
        "fi\n";

static const char fish[] = "function __dynprobe_complete\n"
                           "\tset -l words (commandline -opc) (commandline -ct)\n"
                           "\tset -l found ($words[1] completion --words $words[2..-1] 2>/dev/null)\n"
                           "\tif set -q found[1]\n"
                           "\t\tprintf '%s\\n' $found\n"
                           "\telse\n"
                           "\t\t__fish_complete_path (commandline -ct)\n"
                           "\tend\n"
                           "end\n"
                           "complete -c dynprobe -f -a '(__dynprobe_complete)'\n";

const char *dp_completion_script(const char *shell)
{
	return !strcmp(shell, "bash") ? bash : !strcmp(shell, "zsh") ? zsh : !strcmp(shell, "fish") ? fish : NULL;
}
