"""Makes zconsole.pyz and the Debian package from the wheel in dist/; `.ci/package` calls it.

Both hold the same program: zconsole, what it depends on, and no compiled code. psutil, which is
compiled, is left out: on Linux its figures are read from /proc.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipapp
from email.parser import HeaderParser
from pathlib import Path

TREE = Path(__file__).parents[1]
DIST = TREE / "dist"
WORK = TREE / "build/program"
PARTS = TREE / ".ci/parts"
OLDEST = "3.11"
"""The oldest Python it runs on."""
COMPILED = ("psutil",)
COMMAND = "/usr/bin/zconsole"
TOPICS = ("zconsole-security",)
"""Manual pages of section 7."""
SHELLS = {
    "bash": "usr/share/bash-completion/completions/zconsole",
    "zsh": "usr/share/zsh/vendor-completions/_zconsole",
    "fish": "usr/share/fish/vendor_completions.d/zconsole.fish",
}
NOT_CHOSEN = "The authors of zconsole have not chosen a licence yet."


def main() -> int:
    """Make both; returns 0."""
    program = WORK / "program"
    install_program(program)
    make_pyz(program, DIST / "zconsole.pyz")
    make_deb(program, WORK / "deb")
    return 0


def install_program(target: Path) -> None:
    """The wheel and its dependencies, as they lie in a directory of Python's path."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["export"]]
    pure = [word for word in wanted if not word.startswith(COMPILED)]
    (wheel,) = DIST.glob("*.whl")
    # Wheels for any platform only: nothing compiled can be among them.
    anywhere = ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"]
    pip_install(target, *anywhere, f"--python-version={OLDEST}", *pure)
    pip_install(target, "--no-deps", str(wheel))
    shutil.rmtree(target / "bin", ignore_errors=True)
    for leftover in target.rglob("direct_url.json"):  # where this machine had the wheel
        leftover.unlink()
    for record in target.glob("*.dist-info/RECORD"):  # it lists what was just removed
        record.unlink()


def pip_install(target: Path, *words: str) -> None:
    """Install into a directory, without compiling modules."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "--upgrade", "--target", str(target), *words], check=True)


def make_pyz(program: Path, path: Path) -> None:
    """One file that Python runs: the program, and what unpacks it."""
    source = WORK / "pyz"
    shutil.copytree(program, source)
    shutil.copyfile(PARTS / "pyz_main.py", source / "__main__.py")
    settle_times(source)
    zipapp.create_archive(source, path, "/usr/bin/env python3", compressed=True)
    path.chmod(0o755)


def make_deb(program: Path, root: Path) -> None:
    """A package for every architecture that needs python3 and nothing else."""
    shutil.copytree(program, root / "usr/lib/zconsole")
    write(root / COMMAND[1:], (PARTS / "zconsole").read_text(), 0o755)
    add_documents(program, root)
    add_units(program / "zconsole/share", root / "usr/lib/systemd/system")
    add_control(root)
    version = printed("--version").split()[-1]
    build = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root)]
    settle_times(root)
    subprocess.run([*build, str(DIST / f"zconsole_{version}_all.deb")], check=True)


def add_documents(program: Path, root: Path) -> None:
    """Licences, changes, completions and manual pages."""
    documents = root / "usr/share/doc/zconsole"
    write(documents / "copyright", copyright_of(program))
    write_packed(documents / "changelog.gz", (TREE / "CHANGELOG.md").read_text())
    for shell, path in SHELLS.items():
        write(root / path, printed("completion", shell))
    for name, words in manual_pages().items():
        section = 7 if name in TOPICS else 1
        page = root / f"usr/share/man/man{section}/{name}.{section}.gz"
        write_packed(page, printed("man", *words))


def manual_pages() -> dict[str, list[str]]:
    """The words after `zconsole man` that print each page."""
    code = "from zconsole.cli.options import COMMANDS; print(*COMMANDS)"
    names = [*python("-c", code).split(), *(name.removeprefix("zconsole-") for name in TOPICS)]
    return {"zconsole": [], **{f"zconsole-{name}": [name] for name in names}}


def add_units(share: Path, target: Path) -> None:
    """Units for systemd, which start the command of this package; none is enabled."""
    for unit in share.glob("*.service"):
        write(target / unit.name, unit.read_text())


def add_control(root: Path) -> None:
    """What dpkg reads: the package's description, check sums and scripts."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files) // 1024
    hashes = {path: hashlib.md5(path.read_bytes(), usedforsecurity=False) for path in files}
    sums = [f"{each.hexdigest()}  {path.relative_to(root)}\n" for path, each in hashes.items()]
    control = (PARTS / "control").read_text()
    version = printed("--version").split()[-1]
    write(root / "DEBIAN/control", control.format(version=version, size=size))
    write(root / "DEBIAN/md5sums", "".join(sums))
    for script in ("postinst", "prerm"):
        write(root / "DEBIAN" / script, (PARTS / script).read_text(), 0o755)


def copyright_of(program: Path) -> str:
    """The licence of each package inside, in full (Debian's copyright format 1.0)."""
    parts = [(PARTS / "copyright").read_text(), f"License: not-chosen\n {NOT_CHOSEN}\n"]
    for info in sorted(program.glob("*.dist-info")):
        name, version, licence = metadata_of(info)
        if name == "zconsole":
            continue
        texts = [path.read_text() for path in licence_files(info)]
        indented = "\n".join(" " + (line.rstrip() or ".") for line in "\n".join(texts).splitlines())
        label = licence.split("\n")[0].replace(" ", "-") or "see-below"
        parts.append(
            f"Files: usr/lib/zconsole/* (of {name} {version})\n"
            f"Copyright: as its licence says\nLicense: {label} ({name})\n{indented}\n"
        )
    return "\n".join(parts)


def metadata_of(info: Path) -> tuple[str, str, str]:
    """Name, version and licence of an installed package."""
    data = HeaderParser().parsestr((info / "METADATA").read_text())
    return data["Name"], data["Version"], data["License-Expression"] or data["License"] or ""


def licence_files(info: Path) -> list[Path]:
    """Raises SystemExit where a package comes without: it must not be shipped so."""
    names = ("LICEN", "COPYING", "NOTICE")
    files = [path for path in sorted(info.rglob("*")) if path.name.upper().startswith(names)]
    files = [path for path in files if path.is_file()]
    if not files:
        sys.exit(f"error: {info.name} has no licence file")
    return files


def printed(*words: str) -> str:
    """What the program says, started as it was installed."""
    return python("-m", "zconsole", *words)


def python(*words: str) -> str:
    """The output of Python with the installed program in its path."""
    settings = {**os.environ, "PYTHONPATH": str(WORK / "program"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *words],
        env=settings,
        cwd="/",
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file, with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def write_packed(path: Path, text: str) -> None:
    """Write a file packed by gzip, without the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def settle_times(root: Path) -> None:
    """Give every file the time of the commit, so that the same commit gives the same archive."""
    moment = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in [root, *root.rglob("*")]:
        os.utime(path, (moment, moment))


if __name__ == "__main__":
    sys.exit(main())
