# Completion of zconsole(1) in bash, from `zconsole completion bash`; needs no bash-completion.

# Sets what may follow the command $1: options, its own commands, the kind of each argument.
_zconsole_command() {
    case $1 in
@commands@
    esac
}

# Sets how many words follow the option $1, and their kind.
_zconsole_option() {
    case $1 in
@options@
    *) count=0 ;;
    esac
}

# Prints all that a word of kind $1 can be, one per line; kind "=a b" is a or b.
_zconsole_list() {
    case $1 in
    =?*) printf '%s\n' ${1#=} ;;
@lists@
    host) compgen -A hostname ;;
    command) compgen -c ;;
    esac
}

# Adds the words of kind $1 that begin with $2, behind $3; of each, bash knows the beginning $4.
_zconsole_add() {
    local found
    while IFS= read -r found; do
        if [[ $found == "$2"* ]]; then
            found=$3$found
            printf -v found %q "${found#"$4"}"
            COMPREPLY+=("$found")
        fi
    done < <(_zconsole_list "$1")
}

_zconsole() {
    local IFS=$' \t\n' line=$COMP_LINE piece= word= path= options= commands= kind= only= before=
    local -i i count=0 given=0
    local -a words=() kinds=()
    # bash also breaks words at = : and @, but what no space separates is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if [[ $i == 0 || $line == [[:space:]]* ]]; then
            words+=("$piece")
        else
            words[-1]+=$piece
        fi
        line=${line#"${line%%[![:space:]]*}"}
        line=${line#"$piece"}
    done
    word=${words[-1]}
    [[ $piece == [=:@] ]] && piece=
    COMPREPLY=()
    _zconsole_command ""
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        if ((count)); then
            count=count-1
        elif [[ $only || ${words[i]} != -?* ]]; then
            if [[ ! $only && $given == 0 && " $commands " == *" ${words[i]} "* ]]; then
                path+=${path:+ }${words[i]}
                _zconsole_command "$path"
            else
                given+=1
            fi
        elif [[ ${words[i]} == -- ]]; then
            only=1
        else
            _zconsole_option "${words[i]}"
        fi
    done
    if [[ $count == 0 && ! $only && $word == --*=* ]]; then
        before=${word%%=*}=
        _zconsole_option "${before%=}"
    elif [[ $count == 0 && ! $only && $word == -* ]]; then
        kind="=$options"
    elif ((count == 0)); then
        kind=
        if ((given < ${#kinds[@]})); then
            kind=${kinds[given]%+}
        elif [[ ${kinds[*]} == *+ ]]; then
            kind=${kinds[-1]%+}
        fi
        if [[ ! $only && $given == 0 ]]; then
            _zconsole_add "=$commands" "$word" "" ""
        fi
    fi
    case $kind in
    file | theme) compopt -o default ;;
    directory) compopt -o dirnames ;;
    esac
    _zconsole_add "$kind" "${word#"$before"}" "$before" "${word%"$piece"}"
    [[ ${COMPREPLY-} != *= ]] || compopt -o nospace
}

complete -F _zconsole zconsole zconsole.pyz
