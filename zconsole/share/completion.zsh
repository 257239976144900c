#compdef zconsole zconsole.pyz
# Completion of zconsole(1) in zsh, from `zconsole completion zsh`.

# Offers the lines that the command $2 prints, as $1.
_zconsole_lines() {
  local expl
  local -a found=(${(f)"$(sh -c "$2" 2>/dev/null)"})
  _wanted "$1" expl "$1" compadd -a -- found
}

@functions@

# Sourced, it is made known; found on fpath, it is the completion itself.
if [[ $funcstack[1] == _zconsole ]]; then
  _zconsole "$@"
else
  compdef _zconsole zconsole zconsole.pyz
fi
