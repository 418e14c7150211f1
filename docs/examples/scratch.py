"""The scratch project that the scripted agent works on, and the tools it works with.

Everything is real: a folder on disk, a shell, files. What would differ between machines and runs
(where the folder is, durations, dates of commits) is fixed, or replaced in what the tools return.
"""

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

HOME = "/home/dev/invoice-service"
"""Where the project is, as far as the recording says."""
SOURCE = Path(__file__).parent / "invoice-service"
FIRST_DAY = dt.date(2026, 2, 2)
LAST_DAY = dt.date(2026, 3, 10)
NORDWIND_FROM = dt.date(2026, 3, 3)
GOODS = ("Pallet wrap", "Strapping band", "Carton 40x30", "Edge guard", "Label roll", "Void fill")
READ_LINES_MAX = 2000


class Returned(NamedTuple):
    """What a tool gave back."""

    text: str
    is_error: bool = False


class Scratch:
    """A copy of the project in a folder of its own, with feeds, a ledger, a log and a history."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "invoice-service"
        self.bin = folder / "bin"
        self.commits = 0
        shutil.copytree(SOURCE, self.root, ignore=shutil.ignore_patterns("__pycache__"))
        self.bin.mkdir()
        (self.bin / "python3").symlink_to(Path(sys.executable).resolve())
        write_feeds(self.root / "feeds")
        write_log(self.root)
        (self.root / ".gitignore").write_text("__pycache__/\nbuild/\n", encoding="utf-8")
        for command in (
            "git init -q -b main .",
            "python3 -m invoices nightly --feeds feeds --ledger ledger.json 2>/dev/null",
            "git add README.md docs invoices tests config .gitignore",
            "git commit -qm 'invoice-service 3.0'",
            "git add feeds ledger.json logs",
            "git commit -qm 'Feeds, ledger and log as of 2026-03-10, for the investigation'",
        ):
            self.bash(command)

    def environment(self) -> dict[str, str]:
        """The same on every machine."""
        self.commits += 1
        date = f"2026-03-11T09:{self.commits // 60:02d}:{self.commits % 60:02d}Z"
        return {
            "PATH": f"{self.bin}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.root),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
            **{f"GIT_{who}_NAME": "Dev" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "dev@invoices.example" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_DATE": date for who in ("AUTHOR", "COMMITTER")},
        }

    def bash(self, command: str) -> Returned:
        """Run a command line; the output of both streams, and the exit status when it is not 0."""
        done = subprocess.run(
            ["/bin/bash", "-c", f"exec 2>&1\n{command}"],
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            check=False,
        )
        text = self.neutral(done.stdout.decode("utf-8", "replace").rstrip("\n"))
        if done.returncode:
            return Returned(f"Exit code {done.returncode}\n{text}", is_error=True)
        return Returned(text)

    def read(self, path: str) -> Returned:
        """A file with line numbers."""
        try:
            lines = self._path(path).read_text(encoding="utf-8").splitlines()
        except OSError:
            return Returned(f"File does not exist: {path}", is_error=True)
        return Returned("\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, 1)))

    def write(self, path: str, content: str) -> Returned:
        """A new file, or a new content for an old one."""
        file = self._path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return Returned(f"File written: {path} ({len(content.splitlines())} lines)")

    def edit(self, path: str, old: str, new: str) -> Returned:
        """Replace a text that occurs exactly once."""
        file = self._path(path)
        text = file.read_text(encoding="utf-8")
        if (found := text.count(old)) != 1:
            reason = "String to replace not found" if not found else f"{found} matches, not one"
            return Returned(
                f"<tool_use_error>{reason} in {path}:\n{old}</tool_use_error>", is_error=True
            )
        file.write_text(text.replace(old, new), encoding="utf-8")
        return Returned(f"The file {path} has been updated.")

    def grep(self, pattern: str, path: str) -> Returned:
        """Lines that match, with their file and number."""
        base = self._path(path)
        files = sorted(p for p in base.rglob("*.*") if p.is_file()) if base.is_dir() else [base]
        hits = [
            f"{HOME}/{file.relative_to(self.root)}:{number}:{line}"
            for file in files
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        return Returned("\n".join(hits) or "No matches found")

    def _path(self, path: str) -> Path:
        return self.root / path.removeprefix(HOME + "/")

    def neutral(self, text: str) -> str:
        """The text as it would be on any machine."""
        text = text.replace(str(self.root.resolve()), HOME).replace(str(self.root), HOME)
        text = text.replace(sysconfig.get_path("stdlib"), "/usr/lib/python3")
        text = re.sub(r"(Ran \d+ tests? in )\d+\.\d+s", r"\g<1>0.021s", text)
        text = re.sub(r"/tmp/tmp\w+", "/tmp/scratch", text)  # noqa: S108 -- a text, not a file
        return re.sub(r"\b0x[0-9a-f]{8,}\b", "0x7f0000000000", text)


def workdays() -> list[dt.date]:
    """Monday to Friday, from the first day to the last."""
    days = (FIRST_DAY + dt.timedelta(days=n) for n in range((LAST_DAY - FIRST_DAY).days + 1))
    return [day for day in days if day.weekday() < 5]  # noqa: PLR2004 -- Saturday


class Numbers:
    """Numbers that look like chance and are the same everywhere."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, limit: int) -> int:
        """The next one."""
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return (self.state >> 12) % limit


def write_feeds(folder: Path) -> None:
    """Feeds of the days since the new supplier came."""
    folder.mkdir()
    numbers = Numbers(417)
    first = {"acme": 1040, "borealis": 7300, "nordwind": 20417}
    for day in workdays():
        if day < NORDWIND_FROM - dt.timedelta(days=1):
            continue
        for supplier in first:
            if supplier == "nordwind" and day < NORDWIND_FROM:
                continue
            lines = list(feed_lines(supplier, day, first, numbers))
            name = f"{supplier}-{day}.csv"
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def feed_lines(supplier: str, day: dt.date, first: dict[str, int], numbers: Numbers) -> list[str]:
    """One feed: a header and 7 to 12 invoices of one to four lines."""
    locale = {"acme": "", "borealis": "; locale=en_GB", "nordwind": "; locale=de_DE"}[supplier]
    letter = {"acme": "A", "borealis": "B", "nordwind": "NW"}[supplier]
    rates = {"acme": ("0.20", "0.05"), "borealis": ("0.25",), "nordwind": ("0.19", "0.07")}
    lines = [
        f"# supplier={supplier}; currency=EUR{locale}",
        "number,date,description,quantity,unit_price,tax_rate",
    ]
    for _ in range(7 + numbers.below(6)):
        first[supplier] += 1 + numbers.below(2)
        for _ in range(1 + numbers.below(4)):
            cents = 33 + numbers.below(9000)
            if numbers.below(40) == 0:
                cents = 100_000 + numbers.below(90) * 1000  # a machine, not a box
                cents += numbers.below(1000) if numbers.below(3) else 0
            goods = GOODS[numbers.below(len(GOODS))]
            rate = rates[supplier][numbers.below(len(rates[supplier]))]
            amount = f"{cents // 100:,}.{cents % 100:02d}"
            if supplier == "nordwind":
                amount = amount.replace(",", "'").replace(".", ",").replace("'", ".")
            price = f'"{amount}"' if "," in amount else amount
            quantity = 1 + numbers.below(24)
            lines.append(f"{letter}-{first[supplier]},{day},{goods},{quantity},{price},{rate}")
    return lines


def write_log(root: Path) -> None:
    """What the nightly job wrote in these weeks."""
    numbers = Numbers(98)
    lines: list[str] = []
    for day in workdays():
        lines += log_lines(root, day, numbers)
    (root / "logs").mkdir()
    (root / "logs" / "nightly.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def log_lines(root: Path, day: dt.date, numbers: Numbers) -> list[str]:
    """One night."""
    clock = 7_200 + numbers.below(5)
    lines: list[str] = []

    def log(level: str, text: str) -> None:
        nonlocal clock
        clock += 1 + numbers.below(3)
        stamp = f"{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
        lines.append(f"{day}T{stamp}Z {level:<5} invoices.nightly: {text}")

    log("INFO", f"run {day:%Y%m%d}-1 starts, config/service.toml, 3 retries")
    suppliers = ["acme", "borealis", *(["nordwind"] if day >= NORDWIND_FROM else [])]
    failed = 0
    for supplier in suppliers:
        name = f"{supplier}-{day}.csv"
        log("INFO", f"feed opened: {name}, {2_000 + numbers.below(9_000)} bytes")
        feed = root / "feeds" / name
        text = feed.read_text(encoding="utf-8") if feed.exists() else ""
        bad = re.search(r'"\d\.\d\d(?!0,00)\d,\d\d"', text)  # the others pass, and are wrong
        if bad:
            number = text.count("\n", 0, bad.start()) + 1
            amount = bad[0].strip('"')
            for attempt in (1, 2, 3):
                log("WARN", f"feed failed, attempt {attempt} of 3, next in 20 s: {name}")
                clock += 20
            log(
                "ERROR",
                f"feed failed: {name}:{number}: invalid amount {amount!r}: more than two decimals",
            )
            failed += 1
        else:
            log("INFO", f"feed booked: {name}, {7 + numbers.below(6)} invoices")
    log("INFO", f"ledger saved: ledger.json, {len(suppliers) - failed} feeds, {failed} failed")
    log("INFO", f"run {day:%Y%m%d}-1 ends with status {failed}")
    return lines
