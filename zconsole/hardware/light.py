"""Lights of bays that are on for a stated time: what was found is put back, whatever happens.

A record of each is on the disk before the light goes on. The keeper waits for the time
(`LightDuty`); should it die, or the machine reboot, the next start of a console or the unit at boot
makes up for it (``LocateLights.tidy``). A light that somebody else switched off stays off.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from zconsole.errors import NotFoundError, UsageError, ZconsoleError
from zconsole.hardware.device import Contents
from zconsole.hardware.machine import disks
from zconsole.hardware.sysfs import names_in
from zconsole.system import keeper
from zconsole.system.audit import Log, audit_log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT, boot_id, bytes_in, text_in
from zconsole.system.keeper import LONGEST, StandingDuty
from zconsole.system.patient import NoAnswerError, NotAskedError, Patient
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import StateError, state_dir

NAME, LOCK = "lights.json", "lights.lock"
PATIENCE = 25.0
"""Seconds to wait while another console switches a light."""
HOLDER = "lights.holder"
"""The file that is locked while a process waits for the time of lights."""
LASTING = 4 * 3600.0
"""Seconds a light is on, unless it is switched off before."""
ANSWER = 10.0
"""Seconds an enclosure may take to answer: one whose processor died never does."""
CONFIRM = (0.0, 1.0)
"""Seconds to wait before each look whether the enclosure says that the light is on."""
RETRY = 3600.0
"""Seconds that the keeper goes on trying to put back a light whose time is over."""
GIVE_UP = 7 * 86400.0
"""Seconds that the record of a light is kept: an enclosure away for longer has forgotten it."""
STEP = 60.0
"""Seconds that the clock may be set back; if more, a light's time begins anew."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LitSlot:
    """A light that was switched on here."""

    slot: LedSlot
    serial: str
    """Serial number of the disk that was in the bay then; empty: unknown."""
    bay: str
    """What people call the bay."""
    t: float
    """Epoch seconds at which it was lit."""
    until: float
    """Epoch seconds at which what was found is put back."""
    before: bool
    """Whether it was on already when it was lit first."""
    boot: str
    """The boot in which it was lit last."""
    confirmed: bool = True
    """Whether the enclosure said that it is on: only then does "off" mean that somebody did it."""

    @property
    def name(self) -> str:
        """The bay, and the disk that was in it."""
        return f"{self.bay} (serial {self.serial})" if self.serial else self.bay

    @property
    def words(self) -> str:
        """What lighting it came to."""
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
    """The records while they are locked."""

    records: Records
    _write: Callable[[_File], None]

    def put(self, record: LitSlot) -> None:
        """Keep a record; on the disk when this returns. Raises StateError."""
        self.records[record.slot.key] = record
        self._write(_File(tuple(self.records.values())))

    def drop(self, record: LitSlot) -> None:
        """Forget a record. Raises StateError."""
        del self.records[record.slot.key]
        self._write(_File(tuple(self.records.values())))


class LocateLights:
    """The lights of the machine's bays, shared with every other console.

    Every method may take many seconds, none hangs: call them beside an event loop. They raise
    StateError where the state directory can't be used, ZconsoleError as they say.
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

        ``wake`` has the keeper of a simulated machine look, and nothing is kept on the disk.
        """
        place, self._leds = directory or state_dir(create=False), leds or Leds()
        options = "--root", str(self._leds.root)
        self._wake = wake or partial(keeper.wake, place, HOLDER, options)
        self._file = LockedRecord(_File(()), None if wake else place / NAME, LOCK, PATIENCE)
        self._patients: dict[Path, Patient] = {}
        """By the folder of an enclosure."""
        self._clock = clock
        self._log = log or audit_log(lambda: place)

    def time(self) -> float:
        """Now, by the clock of the records (epoch seconds)."""
        return self._clock()

    def light(self, slot: LedSlot, serial: str, until: float, bay: str = "") -> LitSlot:
        """Light a bay until then (epoch seconds), also over a reboot; again: until the new time.

        ``serial`` is of the disk in it. Raises NotFoundError where the bay has no light,
        ZconsoleError where it cannot be switched, or no keeper waits for the time.
        """
        led = self._required(slot, serial)
        with self._open() as opened:
            known, on = opened.records.get(slot.key), self._is_on(led)
            before = known.before if known is not None and on else on
            named, now = bay or slot.name, self._clock()
            record = LitSlot(slot, serial, named, now, until, before, self._leds.boot, False)
            opened.put(record)  # on the disk before the light is on: a crash must find it
            woken = False
            try:
                self._wake()
                woken = True
                self._ask(led, self._leds.write, ON)
            except (OSError, ZconsoleError) as error:
                if not (woken and isinstance(error, NoAnswerError)):  # else it may go on yet
                    opened.drop(record) if known is None else opened.put(known)
                raise
            if self._confirms(led):
                record = replace(record, confirmed=True)
                opened.put(record)
        self._note(record, "on", "lit")
        return record

    def unlight(self, slot: LedSlot) -> str | None:
        """Put back what was found there; returns what came of it, None where it was not lit here.

        Raises ZconsoleError where it cannot be switched now; it is tried again later.
        """
        with self._open() as opened:
            record = opened.records.get(slot.key)
            return None if record is None else self._put_back(opened, record)

    def force_off(self, slot: LedSlot) -> str:
        """Switch a light off, whoever lit it. Raises NotFoundError, ZconsoleError."""
        if (said := self.unlight(slot)) is not None:
            return said
        self._ask(self._required(slot, ""), self._leds.write, OFF)
        return f"the light of {slot.name} is off"

    def unlight_all(self) -> tuple[str, ...]:
        """``unlight`` for each light that was lit here; failures are told, not raised."""
        with self._open() as opened:
            return self._each(opened, partial(self._put_back, opened))

    def lit(self) -> tuple[LitSlot, ...]:
        """The lights that are on by now, as far as is known, the first to go off first."""
        return tuple(sorted(self._file.read().lights, key=lambda record: record.until))

    def tidy(self) -> tuple[str, ...]:
        """Put back lights whose time is over, and light the others again after a reboot.

        Call it at each start. A light that somebody else switched off is forgotten. Returns what
        was done, in words; failures are told, not raised.
        """
        if not self._file.read().lights:  # nothing is made where there was never a light
            return ()
        with self._open() as opened:
            said = self._each(opened, partial(self._tidied, opened))
        if opened.records:
            self._wake()
        return said

    # For the keeper

    def waiting(self) -> tuple[LitSlot, ...]:
        """Those that wait for their time, or to be put back not long after it."""
        return tuple(lit for lit in self.lit() if self._clock() < lit.until + RETRY)

    def put_back_from_memory(self, known: Iterable[LitSlot]) -> tuple[LitSlot, ...]:
        """Put back those whose time is over, without the file; returns those that are left."""
        left = []
        for record in known:
            try:
                if self._clock() >= record.until:
                    self._restored(record)
                    continue
            except (OSError, ZconsoleError):
                if self._clock() >= record.until + RETRY:
                    continue
            left.append(record)
        return tuple(left)

    # Inside

    @contextlib.contextmanager
    def _open(self) -> Iterator[OpenRecords]:
        """The records, to be read and changed by one at a time. Raises StateError."""
        with self._file.open() as write:
            lights = self._file.read().lights
            yield OpenRecords({record.slot.key: record for record in lights}, write)

    def _put_back(self, opened: OpenRecords, record: LitSlot) -> str:
        """Put back and forget; one that cannot be reached is kept, to be tried again."""
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
        """Put the light back as it was found. Raises ZconsoleError where it can't be reached."""
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
        if now < record.t - STEP:
            record = replace(record, t=now, until=now + record.until - record.t)
            opened.put(record)
        if self._clock() >= record.until:
            return self._put_back(opened, record)
        led = self._led(record)
        if led is None:  # an enclosure may come late; tried again
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
            # What was found is gone with the power; kept before the light is on, as in `light`.
            record = replace(record, before=False)
            opened.put(replace(record, slot=slot, boot=self._leds.boot, confirmed=False))
            self._ask(led, self._leds.write, ON)
            self._note(record, "on", "lit again after a reboot")
        confirmed = on or self._confirms(led)
        opened.put(replace(record, slot=slot, boot=self._leds.boot, confirmed=confirmed))
        return f"the light of {record.name} is on again after the reboot"

    def _each(self, opened: OpenRecords, job: Callable[[LitSlot], str | None]) -> tuple[str, ...]:
        """What a job says of each record, or why it failed; each is tried."""
        said = []
        for record in list(opened.records.values()):
            try:
                said.append(job(record))
            except (OSError, ZconsoleError) as error:
                said.append(f"the light of {record.name}: {error}")
        return tuple(filter(None, said))

    def _led(self, record: LitSlot) -> Path | None:
        """Where the light is now; an enclosure without an id is found in the same boot only."""
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
        """Whether the enclosure says so; one that says nothing has switched nothing off."""
        return self._ask(led, self._leds.read) == OFF

    def _confirms(self, led: Path) -> bool:
        """Whether the enclosure says that the light is on; some say so late, some never."""
        for seconds in CONFIRM:
            time.sleep(seconds)
            with contextlib.suppress(OSError, ZconsoleError):
                if self._is_on(led):
                    return True
        return False

    def _ask(self, led: Path, job: Callable[..., _T], *words: str) -> _T:
        """What an enclosure answers about a light. Raises NoAnswerError after a while.

        One that still owes an answer is not asked again. Raises ZconsoleError.
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
    """Tidies the lights whenever the time of one is over, and now and then, until none is left.

    Where the records can't be read any more, those that were known put back what they found:
    losing the file must not leave a light on.
    """

    name = "lights"
    ends_by = "zconsole light off"

    def __init__(
        self, lights: LocateLights, lock: Path | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(lock, clock)
        self._lights = lights
        self._known: tuple[LitSlot, ...] = ()

    def is_empty(self) -> bool:
        """See StandingDuty."""
        try:
            self._known = self._lights.waiting()
        except (NoAnswerError, NotAskedError):
            if not self._known:
                raise
        except (OSError, ZconsoleError):
            pass
        return not self._known

    async def look(self) -> float:
        """See StandingDuty."""
        before = self._lights.time()
        await in_daemon_thread(self._tidy)
        now = self._lights.time()  # the time of one may be over since
        return min([LONGEST, *(lit.until - now for lit in self._known if lit.until > before)])

    def _tidy(self) -> None:
        try:
            self._lights.tidy()
        except (OSError, ZconsoleError):
            self._known = self._lights.put_back_from_memory(self._known)


ON, OFF = "1", "0"


@dataclass(frozen=True, slots=True)
class LedSlot:
    """A slot of an enclosure, so that it is found again after a reboot."""

    enclosure: str
    """The enclosure's own id (``0x5000…``), the same after a reboot; empty: the kernel has none."""
    component: str
    """The kernel's name of the slot: ``Slot 01``."""
    address: str
    """The enclosure's name in /sys (``0:0:8:0``), which a reboot may change."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the slot, whatever its address is now."""
        return self.enclosure or self.address, self.component

    @property
    def name(self) -> str:
        """What people call it where nothing better is known."""
        return f"{self.component} of enclosure {self.enclosure or self.address}"


def slot_of(locate: str) -> LedSlot:
    """The slot whose locate file this is (``Device.locate``).

    Raises UsageError for a path that is not one.
    """
    path = Path(locate)
    if path.name != "locate" or len(path.parts) < 4:
        raise UsageError(f"{locate} is not the LED of an enclosure's slot")
    box = path.parent.parent
    return LedSlot(text_in(box / "id"), path.parent.name, box.name)


class Leds:
    """The locate LEDs of enclosures' slots (drivers/misc/enclosure.c, drivers/scsi/ses.c).

    Nothing here has a deadline: to read or write one asks the enclosure, which may take seconds or
    hang. The fault LED beside it is the kernel's and ZED's, and never written. Those of a simulated
    machine override all of it.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @property
    def boot(self) -> str:
        """The id of the machine's boot."""
        return boot_id(self.root) or ""

    def find(self, slot: LedSlot, serial: str) -> Path | None:
        """Return the locate file of a slot; None when it is not there, or not certain.

        Two expanders of one chassis share its id, and chassis with a made-up id share it with
        others. Of several, the one counts that has the disk with this serial number, else the one
        that has the address of then: to light another bay would be worse than none.
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
        """Return what the enclosure says of the LED: ON or OFF. Raises OSError."""
        return bytes_in(led).decode("ascii", "replace").strip()

    def write(self, led: Path, value: str) -> None:
        """Switch the LED.

        Raises OSError; the kernel tells nothing of an enclosure that refuses.
        """
        handle = os.open(led, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # makes no file
        try:
            os.write(handle, value.encode("ascii"))
        finally:
            os.close(handle)


def _unread(_: Path) -> Contents:
    return Contents(unread=True)
