/* SPDX-License-Identifier: MIT */
#include "cli/commands/completion/completion.h"

#include <string.h>

/*
 * Bash parts words at : and =, so they are joined again; what it has cut off before the cursor's part must not be repeated. In
 * quotes it parts nothing. It shows what it would insert: beside numbers the names of the processes are shown, too, where several
 * are offered, of which it inserts only what they have in common; not where a key inserts one after the other (37) or all (42).
 */
static const char bash[] = "_dynprobe() {\n"
                           "\tlocal -a words=(\"${COMP_WORDS[0]}\")\n"
                           "\tlocal i word part last='' found about cut=''\n"
                           "\tfor ((i = 1; i <= COMP_CWORD; i++)); do\n"
                           "\t\tword=${COMP_WORDS[i]} part=$word\n"
                           "\t\tif [[ $word == [\\'\\\"]* ]]; then\n"
                           "\t\t\tpart=${word:1}\n"
                           "\t\t\t[[ $part != *\"${word:0:1}\" ]] || part=${part%?}\n"
                           "\t\tfi\n"
                           "\t\tif ((i > 1)) && [[ $word == [:=]* || $last == *[:=] ]]; then\n"
                           "\t\t\tcut=${words[${#words[@]} - 1]}\n"
                           "\t\t\twords[${#words[@]} - 1]+=$part\n"
                           "\t\telse\n"
                           "\t\t\tcut=''\n"
                           "\t\t\twords+=(\"$part\")\n"
                           "\t\tfi\n"
                           "\t\tlast=$word\n"
                           "\tdone\n"
                           "\tpart=${words[${#words[@]} - 1]}\n"
                           "\t[[ $word == [\\'\\\"]* ]] || cut=${part%\"${part##*[:=]}\"}\n"
                           "\tCOMPREPLY=()\n"
                           "\tlocal -a abouts=()\n"
                           "\twhile IFS=$'\\t' read -r found about; do\n"
                           "\t\tCOMPREPLY+=(\"${found#\"$cut\"}\")\n"
                           "\t\tabouts+=(\"$about\")\n"
                           "\tdone < <(\"${words[0]}\" completion --words \"${words[@]:1}\" 2>/dev/null)\n"
                           "\tif ((${#COMPREPLY[@]} == 1)); then\n"
                           "\t\t[[ ${COMPREPLY[0]} != *[=:/\\(\\>.] ]] || compopt -o nospace 2>/dev/null\n"
                           "\telif ((COMP_TYPE != 37 && COMP_TYPE != 42)); then\n"
                           "\t\tfor i in \"${!COMPREPLY[@]}\"; do\n"
                           "\t\t\t[[ ! ${COMPREPLY[i]} =~ ^[0-9,]+$ || -z ${abouts[i]} ]] || COMPREPLY[i]+=\" (${abouts[i]})\"\n"
                           "\t\tdone\n"
                           "\tfi\n"
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
        "\tlocal -a end=()\n"
        "\t[[ $#found -ne 1 || ${found[1]%%$'\\t'*} != *[=:/\\(\\>.] ]] || end=(-S '')\n"
        "\t_describe dynprobe shown $end\n"
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
