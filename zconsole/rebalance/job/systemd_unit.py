"""The systemd unit that lets interrupted jobs go on after a reboot."""

from __future__ import annotations

from pathlib import Path

TEXT = """\
To have interrupted jobs go on after a reboot, install this as
/etc/systemd/system/zconsole-rebalance.service and enable it:

  [Unit]
  Description=Resume interrupted zconsole rebalance jobs
  After=zfs.target
  [Service]
  Type=oneshot
  RemainAfterExit=yes
  KillMode=none
  ExecStart={command} rebalance resume --all
  [Install]
  WantedBy=multi-user.target
"""


def shown(program: str, interpreter: str) -> str:
    """The unit with the whole path of this program: systemd looks into few directories for one.

    ``program`` is how it was started; where that is a module, ``interpreter`` runs it.
    """
    if Path(program).name == "zconsole":
        return TEXT.format(command=_word(str(Path(program).absolute())))
    return TEXT.format(command=f"{_word(interpreter)} -m zconsole")


def _word(path: str) -> str:
    """A path as systemd takes it for one word (systemd.service(5))."""
    safe = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if safe != path or " " in path else path
