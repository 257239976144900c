"""Locate lights of bays, on for a stated time; afterward their former state is restored.

A record of each light is on the disk before it goes on. The keeper waits for its time
(``LightDuty``); should the keeper die, or the machine reboot, the next start of a console or the
unit at boot makes up for it (``LocateLights.tidy``). A light that somebody else switched off stays
off.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from zconsole.errors import NotFoundError, UsageError, ZconsoleError
from zconsole.hardware.device import Contents
from zconsole.hardware.machine import disks
from zconsole.system import keeper
from zconsole.system.audit import Log, audit_log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT, boot_id, bytes_in, names_in, text_in
from zconsole.system.keeper import LONGEST_WAIT, StandingDuty
from zconsole.system.patient import NoAnswerError, NotAskedError, Patient
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import StateError, state_dir

NAME, LOCK = "lights.json", "lights.lock"
PATIENCE = 25.0
"""Seconds to wait while another console switches a light."""
HOLDER = "lights.holder"
"""File locked by the process that waits for the end of lights."""
LASTING = 4 * 3600.0
"""Seconds a light stays on, unless it is switched off earlier."""
ANSWER = 10.0
"""Seconds an enclosure may take to answer: one whose processor died never does."""
CONFIRM = (0.0, 1.0)
"""Seconds to wait before each check that the enclosure confirms the light."""
RETRY = 3600.0
"""Seconds for which the keeper keeps trying to restore a light whose time is over."""
GIVE_UP = 7 * 86400.0
"""Seconds for which a record is kept: an enclosure away for longer has lost the light."""
STEP = 60.0
"""Seconds that the clock may be set back; beyond that, a light's time starts over."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LitSlot:
    """A light that was switched on by zconsole."""

    slot: LedSlot
    serial: str
    """Serial number of the disk then in the bay; empty if unknown."""
    bay: str
    """Name of the bay, as people use it."""
    t: float
    """Epoch seconds at which it was lit."""
    until: float
    """Epoch seconds at which the former state is restored."""
    before: bool
    """Whether it was already on when it was first lit."""
    boot: str
    """Id of the boot in which it was last lit."""
    confirmed: bool = True
    """Whether the enclosure confirmed that it is on.

    Only then does "off" mean that somebody else switched it off.
    """

    @property
    def name(self) -> str:
        """The bay, and the disk that was in it."""
        return f"{self.bay} (serial {self.serial})" if self.serial else self.bay

    @property
    def words(self) -> str:
        """Result of lighting it, as a sentence."""
        said = f"the light of {self.name} is on"
        if self.before:
            said += "; it was on before, and stays on at the end"
        if not self.confirmed:
            said += "; the enclosure doesn't confirm it: look at the bay"
        return said


Records = dict[tuple[str, str], LitSlot]


@dataclass(frozen=True, slots=True)
class _File:
    lights: tuple[LitSlot, ...]
    version: int = 1


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The records, while they are locked."""

    records: Records
    _write: Callable[[_File], None]

    def put(self, record: LitSlot) -> None:
        """Keep a record, on the disk when this returns. Raises StateError."""
        self.records[record.slot.key] = record
        self._write(_File(tuple(self.records.values())))

    def drop(self, record: LitSlot) -> None:
        """Forget a record. Raises StateError."""
        del self.records[record.slot.key]
        self._write(_File(tuple(self.records.values())))


class LocateLights:
    """The lights of the machine's bays, shared by all consoles.

    Every method may take many seconds, but none hangs: do not call them in an event loop's thread.
    They raise StateError if the state directory can't be used, and ZconsoleError as documented.
    """

    def __init__(
        self,
        directory: Path | None = None,
        leds: Leds | None = None,
        clock: Callable[[], float] = time.time,
        log: Log | None = None,
        wake: Callable[[], object] | None = None,
    ) -> None:
        """``directory`` keeps the records (default: the state directory).

        ``wake`` starts the keeper of a simulated machine; with it, records stay in memory.
        """
        place, self._leds = directory or state_dir(create=False), leds or Leds()
        options = "--root", str(self._leds.root)
        self._wake = wake or partial(keeper.wake, place, HOLDER, options)
        self._file = LockedRecord(_File(()), None if wake else place / NAME, LOCK, PATIENCE)
        self._patients: dict[Path, Patient] = {}
        """Requests to enclosures, by the enclosure's folder."""
        self._clock = clock
        self._log = log or audit_log(lambda: place)

    def time(self) -> float:
        """Return epoch seconds by the clock of the records."""
        return self._clock()

    def light(self, slot: LedSlot, serial: str, until: float, bay: str = "") -> LitSlot:
        """Light a bay until ``until`` (epoch seconds), even across a reboot.

        If the bay is already lit, the new time replaces the old one. ``serial`` is the serial
        number of the disk in it. Raises NotFoundError if the bay has no light, and ZconsoleError if
        it cannot be switched or no keeper waits for its end.
        """
        led = self._required(slot, serial)
        with self._open() as opened:
            known, on = opened.records.get(slot.key), self._is_on(led)
            before = known.before if known is not None and on else on
            named, now = bay or slot.name, self._clock()
            record = LitSlot(slot, serial, named, now, until, before, self._leds.boot, False)
            opened.put(record)  # on the disk before the light is on, for the case of a crash
            woken = False
            try:
                self._wake()
                woken = True
                self._ask(led, self._leds.write, ON)
            except (OSError, ZconsoleError) as error:
                if not (woken and isinstance(error, NoAnswerError)):  # otherwise it may still go on
                    opened.drop(record) if known is None else opened.put(known)
                raise
            if self._confirms(led):
                record = replace(record, confirmed=True)
                opened.put(record)
        self._note(record, "on", "lit")
        return record

    def unlight(self, slot: LedSlot) -> str | None:
        """Restore the former state of a light; return the result, or None if it was not lit here.

        Raises ZconsoleError if it cannot be switched now; the keeper will retry.
        """
        with self._open() as opened:
            record = opened.records.get(slot.key)
            return None if record is None else self._put_back(opened, record)

    def force_off(self, slot: LedSlot) -> str:
        """Switch off a light, whoever lit it. Raises NotFoundError, ZconsoleError."""
        if (said := self.unlight(slot)) is not None:
            return said
        self._ask(self._required(slot, ""), self._leds.write, OFF)
        return f"the light of {slot.name} is off"

    def unlight_all(self) -> tuple[str, ...]:
        """Restore every light that was lit here; return results and failures as sentences."""
        with self._open() as opened:
            return self._each(opened, partial(self._put_back, opened))

    def lit(self) -> tuple[LitSlot, ...]:
        """Return the lights believed to be on, the first to go off first.

        If the file was removed, these are the ones known last.
        """
        lights = self._file.read(self._file.last).lights
        return tuple(sorted(lights, key=lambda record: record.until))

    def tidy(self) -> tuple[str, ...]:
        """Restore lights whose time is over, and relight the others after a reboot.

        Call this at each start. A light that somebody else switched off is forgotten. Returns the
        results as sentences; failures are among them and not raised.
        """
        if not self.lit():  # create no files on a machine that never had a light
            return ()
        with self._open() as opened:
            said = self._each(opened, partial(self._tidied, opened))
        if opened.records:
            self._wake()
        return said

    # For the keeper

    def waiting(self) -> tuple[LitSlot, ...]:
        """Return the lights still to be restored, up to RETRY seconds after their time.

        They are those of the last records that could be read.
        """
        return tuple(lit for lit in self._file.last.lights if self._clock() < lit.until + RETRY)

    def put_back_from_memory(self) -> None:
        """Restore the lights whose time is over, without the file."""
        left = []
        for record in self.waiting():
            with contextlib.suppress(OSError, ZconsoleError):
                if self._clock() >= record.until:
                    self._restored(record)
                    continue
            left.append(record)
        self._file.last = _File(tuple(left))

    # Inside

    @contextlib.contextmanager
    def _open(self) -> Iterator[OpenRecords]:
        """Lock the records for reading and changing. Raises StateError."""
        with self._file.open() as write:
            yield OpenRecords({record.slot.key: record for record in self.lit()}, write)

    def _put_back(self, opened: OpenRecords, record: LitSlot) -> str:
        """Restore a light and forget it; an unreachable one is kept and tried again later."""
        try:
            said = self._restored(record)
        except (OSError, ZconsoleError):
            if self._clock() < record.until + GIVE_UP:
                opened.put(replace(record, until=min(record.until, self._clock())))
                raise
            said = f"the light of {record.name} could not be put back; forgotten"
        opened.drop(record)
        return said

    def _restored(self, record: LitSlot) -> str:
        """Restore the former state of a light. Raises ZconsoleError if it can't be reached."""
        led = self._led(record)
        if led is None:
            raise NotFoundError(f"the enclosure of {record.name} is not there now")
        if record.confirmed and self._is_off(led):
            return f"the light of {record.name} was off already: somebody else switched it off"
        if record.before:
            return f"the light of {record.name} stays on, as it was found"
        self._ask(led, self._leds.write, OFF)
        self._note(record, "off", "restored")
        return f"the light of {record.name} is off"

    def _tidied(self, opened: OpenRecords, record: LitSlot) -> str | None:
        now = self._clock()
        # The clock was set back, so the end would come too late.
        if now < record.t - STEP:
            record = replace(record, t=now, until=now + record.until - record.t)
            opened.put(record)
        if self._clock() >= record.until:
            return self._put_back(opened, record)
        led = self._led(record)
        if led is None:  # an enclosure may appear late; try again
            return None
        if record.boot != self._leds.boot:
            return self._lit_again(opened, record, led)
        if record.confirmed and self._is_off(led):
            opened.drop(record)
            return f"somebody else switched off the light of {record.name}"
        return None

    def _lit_again(self, opened: OpenRecords, record: LitSlot, led: Path) -> str:
        slot = replace(record.slot, address=led.parent.parent.name)
        self._wake()
        if not (on := self._is_on(led)):
            # The former state was lost with the power. The record is written before the light is
            # on, as in `light`.
            record = replace(record, before=False)
            opened.put(replace(record, slot=slot, boot=self._leds.boot, confirmed=False))
            self._ask(led, self._leds.write, ON)
            self._note(record, "on", "lit again after a reboot")
        confirmed = on or self._confirms(led)
        opened.put(replace(record, slot=slot, boot=self._leds.boot, confirmed=confirmed))
        return f"the light of {record.name} is on again after the reboot"

    def _each(self, opened: OpenRecords, job: Callable[[LitSlot], str | None]) -> tuple[str, ...]:
        """Run ``job`` for each record; return its results and failures as sentences."""
        said = []
        for record in list(opened.records.values()):
            try:
                said.append(job(record))
            except (OSError, ZconsoleError) as error:
                said.append(f"the light of {record.name}: {error}")
        return tuple(filter(None, said))

    def _led(self, record: LitSlot) -> Path | None:
        """Return the locate file now, or None.

        Without an id, an enclosure can be found only in the same boot.
        """
        if not record.slot.enclosure and record.boot != self._leds.boot:
            return None
        return self._leds.find(record.slot, record.serial)

    def _required(self, slot: LedSlot, serial: str) -> Path:
        led = self._leds.find(slot, serial)
        if led is None:
            raise NotFoundError(f"{slot.name} has no light that can be told from others")
        return led

    def _is_on(self, led: Path) -> bool:
        return self._ask(led, self._leds.read) == ON

    def _is_off(self, led: Path) -> bool:
        """Return whether the enclosure reports "off"; no answer does not count as off."""
        return self._ask(led, self._leds.read) == OFF

    def _confirms(self, led: Path) -> bool:
        """Return whether the enclosure reports the light on; some do so late, some never."""
        for seconds in CONFIRM:
            time.sleep(seconds)
            with contextlib.suppress(OSError, ZconsoleError):
                if self._is_on(led):
                    return True
        return False

    def _ask(self, led: Path, job: Callable[..., _T], *words: str) -> _T:
        """Return an enclosure's answer to ``job`` on a light.

        Raises NoAnswerError after ANSWER seconds, and ZconsoleError if the enclosure refuses or
        still owes an earlier answer: it is not asked twice at once.
        """
        patient = self._patients.setdefault(led.parent.parent, Patient())
        try:
            return patient.call(partial(job, led, *words), ANSWER)
        except NoAnswerError:
            raise NoAnswerError(
                f"the enclosure gave no answer in {ANSWER:g} s; the light may still change"
            ) from None
        except StateError:
            raise ZconsoleError("the enclosure still gives no answer") from None
        except OSError as error:
            raise ZconsoleError(f"the enclosure refused: {error.strerror}") from error

    def _note(self, record: LitSlot, value: str, result: str) -> None:
        where = {"slot": asdict(record.slot), "serial": record.serial, "bay": record.bay}
        fields = {"kind": "light", "light": value, **where, "ok": True, "result": result}
        self._log.note(self._clock(), "ended", **fields)


class LightDuty(StandingDuty):
    """A duty that restores lights when their time is over, until none is left.

    If the records can't be read any more, it restores the lights it knows: losing the file must not
    leave a light on.
    """

    name = "lights"
    ends_by = "zconsole light off"

    def __init__(
        self, lights: LocateLights, lock: Path | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(lock, clock)
        self._lights = lights

    def is_empty(self) -> bool:
        """Return whether no light is waiting for its end, by the last readable records."""
        try:
            self._lights.lit()
        except (NoAnswerError, NotAskedError):
            if not self._lights.waiting():
                raise
        except (OSError, ZconsoleError):
            pass
        return not self._lights.waiting()

    async def look(self) -> float:
        """Restore lights that are due; return the seconds until the next check."""
        before = self._lights.time()
        await in_daemon_thread(self._tidy)
        now = self._lights.time()  # more may have become due since
        waits = (lit.until - now for lit in self._lights.waiting() if lit.until > before)
        return min([LONGEST_WAIT, *waits])

    def _tidy(self) -> None:
        try:
            self._lights.tidy()
        except (OSError, ZconsoleError):
            self._lights.put_back_from_memory()


ON, OFF = "1", "0"


@dataclass(frozen=True, slots=True)
class LedSlot:
    """A slot of an enclosure, identified so that it can be found again after a reboot."""

    enclosure: str
    """The enclosure's own id (``0x5000…``), stable across reboots; empty if the kernel has none."""
    component: str
    """The kernel's name of the slot: ``Slot 01``."""
    address: str
    """The enclosure's name in /sys (``0:0:8:0``), which a reboot may change."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the slot, independent of its current address."""
        return self.enclosure or self.address, self.component

    @property
    def name(self) -> str:
        """Name for people, if no better one is known."""
        return f"{self.component} of enclosure {self.enclosure or self.address}"


def slot_of(locate: str) -> LedSlot:
    """Return the slot of a locate file (``Device.locate``).

    Raises UsageError if the path is not one.
    """
    path = Path(locate)
    if path.name != "locate" or len(path.parts) < 4:
        raise UsageError(f"{locate} is not the LED of an enclosure's slot")
    box = path.parent.parent
    return LedSlot(text_in(box / "id"), path.parent.name, box.name)


class Leds:
    """The locate LEDs of enclosures' slots (drivers/misc/enclosure.c, drivers/scsi/ses.c).

    Nothing here has a deadline: reading or writing an LED asks the enclosure, which may take
    seconds or hang. The fault LED next to it belongs to the kernel and ZED and is never written.
    The subclass for a simulated machine overrides all of this.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @property
    def boot(self) -> str:
        """Id of the machine's boot."""
        return boot_id(self.root) or ""

    def find(self, slot: LedSlot, serial: str) -> Path | None:
        """Return the locate file of a slot; None if it is missing or not certain.

        Two expanders of one chassis share its id, and chassis with a made-up id share it with
        others. Of several candidates, the one that holds the disk with this serial number counts,
        otherwise the one at the recorded address: lighting another bay would be worse than lighting
        none.
        """
        name = slot.component
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            return None  # a name from a record must stay in its directory
        found = {}
        shelves = self.root / "sys/class/enclosure"
        for box in (shelves / address for address in names_in(shelves)):
            same = text_in(box / "id") == slot.enclosure
            led = box / name / "locate"
            if same and (slot.enclosure or box.name == slot.address) and led.exists():
                found[box.name] = led.resolve()
        if len(found) > 1:
            known = disks(self.root, _unread)
            holding = {disk.locate for disk in known if serial and disk.serial == serial}
            with_disk = {address: led for address, led in found.items() if str(led) in holding}
            first = next(iter(with_disk.values()), None)
            return (with_disk or found).get(slot.address, first)
        return next(iter(found.values()), None)

    def read(self, led: Path) -> str:
        """Return the state that the enclosure reports for the LED: ON or OFF. Raises OSError."""
        return bytes_in(led).decode("ascii", "replace").strip()

    def write(self, led: Path, value: str) -> None:
        """Switch the LED.

        Raises OSError; the kernel does not report that an enclosure refuses.
        """
        handle = os.open(led, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # never makes a file
        try:
            os.write(handle, value.encode("ascii"))
        finally:
            os.close(handle)


def _unread(_: Path) -> Contents:
    return Contents(unread=True)
