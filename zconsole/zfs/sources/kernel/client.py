"""Client of the helper process: sends requests, enforces deadlines, restarts the helper."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from zconsole.system.async_process import ByteProcess, ProcessRunner
from zconsole.system.process import PACKAGE_ROOT, DeadlineError, own
from zconsole.zfs.sources.kernel.helper import Answers, requests
from zconsole.zfs.sources.reader import (
    PoolGoneError,
    ReaderUnusableError,
    ReadFailedError,
    not_started,
)

COMMAND = own("zconsole.zfs.sources.kernel.helper")
CRASHES_ALLOWED = 2
"""Consecutive reads of one pool that may end with a crash; an answer about it resets the count."""
REMIND = 0.1
"""Seconds after which the helper is told to continue with other pools if one does not return."""
START_DEADLINE = 30.0
"""Seconds to start Python, which touches no pool; a busy machine may need this long."""


class KernelReader:
    """Reads pools through a helper process, which is replaced when a call passes its deadline."""

    name = "libzfs"

    def __init__(
        self,
        connector: ProcessRunner,
        command: Sequence[str] = COMMAND,
        start_deadline: float = START_DEADLINE,
    ) -> None:
        self._connector = connector
        self._command = tuple(command)
        self._start_deadline = start_deadline
        self._helper: _Helper | None = None
        self._starting: asyncio.Task[_Helper] | None = None
        """The newest start of a helper."""
        self._crashes: Counter[str] = Counter()
        """Number of reads of each pool that ended with the helper, since it last answered about
        that pool."""

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """Ask the helper for the pool's config; ``deadline`` starts once the helper has started."""
        while True:
            try:
                helper = await self._running()
                answer = await helper.ask(pool, deadline)
            except TimeoutError:
                self._replace(helper)
                text = f"the kernel gave no answer in {deadline:.3g} s"
                raise DeadlineError(text, helper.alive) from None
            except _HelperReplacedError:
                continue
            except _HelperEndedError as error:
                self._crashes[pool] += 1
                if self._crashes[pool] > CRASHES_ALLOWED:
                    raise ReaderUnusableError(f"the libzfs helper keeps exiting: {error}") from None
                raise ReadFailedError(f"the libzfs helper exited: {error}") from None
            self._crashes.pop(pool, None)
            if "config" in answer:
                return {"libzfs": answer["config"]}
            if "gone" in answer:
                raise PoolGoneError
            why = answer.get("error", "the libzfs helper gave an invalid answer")
            raise ReaderUnusableError(str(why))

    async def aclose(self) -> None:
        """Abandon the helper process, also one that is starting."""
        if self._starting is not None:
            self._starting.cancel()
        self._replace(self._helper)
        await asyncio.sleep(0)  # one turn of the event loop, in which the pipes close

    async def _running(self) -> _Helper:
        """Return the helper, started if necessary; all that wait for one start share its failure.

        Raises ReaderUnusableError if it can never start, DeadlineError if the next attempt may
        succeed, and _HelperEndedError.
        """
        if self._helper is not None and self._helper.serving:
            return self._helper
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._started())
        return await asyncio.shield(self._starting)

    async def _started(self) -> _Helper:
        """Start a helper and wait until it can be asked. Raises as ``_running`` does."""
        helper = _Helper()
        try:
            helper.channel = await self._connector.connect(
                self._command, helper.on_output, cwd=PACKAGE_ROOT
            )
        except OSError as error:
            raise not_started(f"the libzfs helper does not start: {error}", error) from None
        try:
            async with asyncio.timeout(self._start_deadline):
                await helper.ready()
        except TimeoutError:
            raise ReaderUnusableError("the libzfs helper does not start") from None
        finally:
            if not helper.serving:
                helper.abandon()
        self._helper = helper
        return helper

    def _replace(self, helper: _Helper | None) -> None:
        """Abandon a helper; the next read starts another."""
        if helper is None:
            return
        helper.abandon()
        if self._helper is helper:
            self._helper = None


class _HelperEndedError(Exception):
    """The helper exited before it answered."""


class _HelperReplacedError(Exception):
    """The helper was abandoned because another pool's call passed its deadline."""


class _Helper:
    """One helper process and the answers awaited from it."""

    channel: ByteProcess

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answers = Answers()
        self._waiting: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self._unsent: list[str] = []
        self._reminder: asyncio.Handle | None = None
        self._hello: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self._ended: Exception | None = None

    @property
    def serving(self) -> bool:
        """True once it has started and while it can be asked."""
        ended = self._ended is not None  # then the first message may be an exception
        return not ended and self._hello.done() and "ready" in self._hello.result()

    def alive(self) -> bool:
        """Return whether the process still exists, perhaps stuck in the kernel."""
        return self.channel.alive

    async def ready(self) -> None:
        """Wait until it can ask the kernel. Raises ReaderUnusableError if it cannot."""
        hello = await asyncio.shield(self._hello)
        if "ready" not in hello:
            raise ReaderUnusableError(str(hello.get("unusable", "unknown helper")))

    async def ask(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """Return the answer about one pool. Raises TimeoutError after ``deadline`` seconds.

        asyncio.timeout() is not used: it drops an answer that arrived while this process was
        stopped.
        """
        if self._ended is not None:
            raise self._ended
        answer: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self._waiting[pool] = answer

        def expire() -> None:
            if not answer.done():
                answer.set_exception(TimeoutError())

        late = self._loop.call_later(deadline, expire)
        # Sent at the end of this turn of the event loop, together with other pools.
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(pool)
        try:
            return await answer
        finally:
            late.cancel()

    def _send(self) -> None:
        """Request all waiting pools in one write, which wakes one thread of the helper.

        Repeat while several answers are awaited: another thread continues where that one is stuck.
        """
        if self._reminder is not None:
            self._reminder.cancel()
        if self._unsent or len(self._waiting) > 1:
            for records in requests(self._unsent or [""]):
                self.channel.write(records)
            self._unsent.clear()
            self._reminder = self._loop.call_later(REMIND, self._send)

    def abandon(self) -> None:
        """Kill the process without waiting; pending calls get an error."""
        self.channel.abandon()
        self._end(_HelperReplacedError())

    def on_output(self, data: memoryview) -> None:
        """Process output of the helper; empty data means that it has exited."""
        if not data:
            self._loop.call_soon(self._close)  # by then, the last line of stderr has arrived
            return
        try:
            for answer in self._answers.feed(data):
                self._on_answer(answer)
        except ValueError:
            self.channel.abandon()
            self._end(_HelperEndedError("it gave no answer"))

    def _close(self) -> None:
        last_words = self.channel.stderr.strip().rpartition("\n")[2]
        self._end(_HelperEndedError(last_words or "without a message"))

    def _on_answer(self, answer: dict[str, Any]) -> None:
        if not self._hello.done():
            self._hello.set_result(answer)
            return
        waiting = self._waiting.pop(str(answer.get("pool")), None)
        if not self._waiting and self._reminder is not None:
            self._reminder.cancel()
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _end(self, why: Exception) -> None:
        if self._ended is not None:
            return
        self._ended = why
        for future in (self._hello, *self._waiting.values()):
            if not future.done():
                future.set_exception(why)
                future.exception()  # asyncio logs an exception that is never retrieved
        self._waiting.clear()
        self._unsent.clear()
