"""The alerts that the options of ``watch`` and the console ask for."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable

from zconsole.errors import NotFoundError
from zconsole.monitor.alerts.alerting import Alerting, hook_argv
from zconsole.monitor.alerts.rules import AlertRules
from zconsole.system.async_process import ProcessRunner


def alerting(args: argparse.Namespace, complain: Callable[[str], None]) -> Alerting | None:
    """What looks for the alerts that are asked for; None when none are.

    ``complain`` is given a line about each hook that fails. Raises UsageError or NotFoundError for
    a hook that is no command: whoever goes to sleep must not learn that from silence.
    """
    if not (args.hook is not None or args.bell or args.notify):
        return None
    rules = AlertRules(args.stalled_after, args.slip, args.free_floor)
    hook = () if args.hook is None else hook_argv(args.hook)
    if hook and shutil.which(hook[0]) is None:
        raise NotFoundError(f"--hook: there is no command {hook[0]!r}")
    return Alerting(rules, ProcessRunner(), complain, hook, args.bell, args.notify)
