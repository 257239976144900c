# Completion of zconsole(1) in fish, from `zconsole completion fish`.

set -g __zconsole_commands @commands@
# Once for each value.
set -g __zconsole_valued @valued@

# Whether the cursor is behind the command $argv[1] and at what $argv[2] says: its argument of that
# number (0 is the first, 1+ the second or a later one), a command of its own, or an option's second
# value.
function __zconsole_at
    set -l path
    set -l given 0
    set -l value 0
    set -l only
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $value -gt 0
            set value (math $value - 1)
        else if set -q only[1]; or not string match -q -- '-?*' "$word"
            set -l inner (string trim "$path $word")
            if not set -q only[1]; and test $given -eq 0; and contains -- $inner $__zconsole_commands
                set path $inner
            else
                set given (math $given + 1)
            end
        else if string match -q -- -- "$word"
            set only 1
        else
            set value (count (string match -- "$word" $__zconsole_valued))
        end
    end
    test "$path" = "$argv[1]"; or return 1
    switch "$argv[2]"
        case ''
            return 0
        case command
            test $value -eq 0 -a $given -eq 0 -a -z "$only"
        case value
            test $value -gt 0
        case '*+'
            test $value -eq 0 -a $given -ge (string trim -r -c + $argv[2])
        case '*'
            test $value -eq 0 -a $given -eq $argv[2]
    end
end

@lists@

complete -c zconsole -f
@completions@
complete -c zconsole.pyz -w zconsole
