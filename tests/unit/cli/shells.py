"""Completion in real shells: all completions of a line's last word."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

BASH = r"""
zconsole() { printf '<%s>' "$@"; echo; }
PS1= PS2=
bind 'set enable-bracketed-paste off'
bind '"\C-t": insert-completions'
"""
ZSH = r"""
zconsole() { printf '<%s>' "$@"; echo; }
PS1= PS2=
unsetopt prompt_cr prompt_sp
unset zle_bracketed_paste
autoload -Uz compinit && compinit -u -D
_insert_all() { _main_complete; compstate[insert]=all; }
zle -C insert-all complete-word _insert_all
bindkey '^T' insert-all
"""
ALL = b"\x14"
"""The key that inserts all completions, in bash and zsh."""
SHOWN = re.compile(rb"^(<.*>)\r?\n", re.MULTILINE)


class InteractiveShell:
    """A shell on a terminal of its own, in which ``zconsole`` prints its words."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._terminal, theirs = os.openpty()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *argv],
            env={**os.environ, "TERM": "dumb", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def complete(self, line: str) -> set[str]:
        """Return the completions of a line's last word; the word itself if nothing fits."""
        os.write(self._terminal, line.encode() + ALL + b"\n")
        said = b""
        while not (found := SHOWN.search(said)):
            said += os.read(self._terminal, 65536)
        words = re.findall("<(.*?)>", found[1].decode())
        return set(words[len(line.split(" ")) - 2 :])

    def close(self) -> None:
        os.close(self._terminal)  # hangs up the shell
        self._process.wait()


def fish_completes(setup: str, line: str, environment: Mapping[str, str]) -> set[str]:
    """Return fish's completions of a line's last word; ``setup`` is run first."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"{setup}; complete -C $argv[1]", line],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return {each.partition("\t")[0] for each in done.stdout.splitlines()}
