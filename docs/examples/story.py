"""What the user and the scripted agent of the example session say, and which tools it calls."""

from typing import Any, NamedTuple, TypeAlias

from scratch import HOME

Said: TypeAlias = dict[str, str]


class Call(NamedTuple):
    """A tool call of the agent."""

    tool: str
    input: dict[str, Any]


class User(NamedTuple):
    """What the user asks."""

    text: str


class Pause(NamedTuple):
    """Nobody types."""

    minutes: float


class Say(NamedTuple):
    """One response of the agent; `steer` is what the user types while its tools run."""

    text: str
    calls: tuple[Call, ...] = ()
    steer: str = ""


def say(text: str, *calls: Call, steer: str = "") -> Say:
    return Say(text, calls, steer)


def bash(command: str, description: str = "") -> Call:
    return Call(
        "Bash", {"command": command, **({"description": description} if description else {})}
    )


def read(path: str) -> Call:
    return Call("Read", {"file_path": f"{HOME}/{path}"})


def grep(pattern: str, path: str) -> Call:
    return Call("Grep", {"pattern": pattern, "path": f"{HOME}/{path}"})


def write(path: str, content: str) -> Call:
    return Call("Write", {"file_path": f"{HOME}/{path}", "content": content})


def edit(path: str, old: str, new: str) -> Call:
    return Call("Edit", {"file_path": f"{HOME}/{path}", "old_string": old, "new_string": new})


ALL_TESTS = bash("python3 -m unittest -v 2>&1", "Run the whole test suite")

NIGHTLY_BUG = (
    User(
        "The nightly job has reported failed feeds since last Tuesday, and billing says that some "
        "Nordwind invoices look far too high. Find out why and fix it, please.\n\n"
        "Two rules for this whole session: never touch the public API (the five names in "
        "invoices/__init__.py and their signatures), and always run the whole test suite before you "
        "say that something is done."
    ),
    say(
        "I'll start with the layout, the history and the README.",
        bash("git log --oneline --stat | head -60", "Show the history"),
        bash("find . -path ./.git -prune -o -type f -print | sort", "List the files"),
        read("README.md"),
    ),
    say(
        "Before anything else: which names are public, so that I stay away from them.",
        read("docs/api.md"),
        read("invoices/__init__.py"),
    ),
    say(
        "Public are Invoice, Line, load_feed(path), total_of(invoice) and run_nightly(feeds, ledger). "
        "Signatures frozen. Now the log.",
        bash("tail -n 130 logs/nightly.log", "Show the last two weeks of the log"),
    ),
    say(
        "",
        grep("ERROR|ends with status [^0]", "logs/nightly.log"),
        read("config/suppliers.toml"),
        read("config/service.toml"),
    ),
    say(
        "Only Nordwind fails, on 2026-03-03, 03-06 and 03-10, each time with `more than two "
        "decimals` for an amount like 1.071,23. That is a German amount: dot for thousands, comma "
        "for decimals. suppliers.toml even says locale de_DE. Let me see how amounts are parsed.",
        read("invoices/money.py"),
        read("invoices/feed.py"),
    ),
    say(
        "parse_amount() drops every comma. So 1.071,23 becomes 1.07123 and is refused, which is the "
        "harmless case. But 84,27 becomes 8427, a hundred times too high, and nobody notices. I want "
        "to see that with my own eyes.",
        bash(
            "python3 - <<'END'\n"
            "from invoices.money import InvalidAmount, format_amount, parse_amount\n"
            "for text in ('84,27', '1.071,23', '1.050,00', '0,33', '1,234.56', '12'):\n"
            "    try:\n"
            "        print(f'{text:>10}', format_amount(parse_amount(text)))\n"
            "    except InvalidAmount as error:\n"
            "        print(f'{text:>10}', error)\n"
            "END",
            "Parse a few amounts",
        ),
        bash("cat feeds/nordwind-2026-03-04.csv feeds/nordwind-2026-03-05.csv", "Show two feeds"),
        bash("head -n 4 feeds/acme-2026-03-04.csv feeds/borealis-2026-03-04.csv", "Compare others"),
    ),
    say(
        "Confirmed, and there is a third case: 1.050,00 becomes 1.05 EUR, a thousand times too low. "
        "It is in the feed of 2026-03-04, invoice NW-20450, line with Edge guard. So on days without "
        "an error in the log the ledger is silently wrong. What do the tests say today?",
        ALL_TESTS,
    ),
    say(
        "36 of 37 pass. The one failure, test_tax_is_rounded_once_per_rate, is older and has nothing "
        "to do with Nordwind; I leave it for later. Now what the ledger holds of Nordwind.",
        bash(
            "python3 -m invoices show 2026-03-04 --ledger ledger.json; "
            "python3 -m invoices show 2026-03-05 --ledger ledger.json; "
            "python3 -m invoices show 2026-03-09 --ledger ledger.json",
            "List the booked invoices of three days",
        ),
        read("invoices/nightly.py"),
        read("invoices/totals.py"),
    ),
    say(
        "NW-20450 and the others stand there with sums that no pallet wrap costs. My plan: let "
        "parse_amount decide by the last separator in the amount, which is the decimal one. Tests "
        "first.",
        read("tests/test_money.py"),
        edit(
            "tests/test_money.py",
            "    def test_words_are_refused(self):",
            "    def test_german_decimals(self):\n"
            '        self.assertEqual(parse_amount("84,27"), 8427)\n\n'
            "    def test_german_thousands(self):\n"
            '        self.assertEqual(parse_amount("1.071,23"), 107123)\n\n'
            "    def test_words_are_refused(self):",
        ),
        steer=(
            "Please don't guess from the amount: 1.234 could be either. Each feed has a locale in its "
            "header, use that. A feed without a locale is en_GB; Acme's feeds have none."
        ),
    ),
    say(
        "Right, the header knows. So parse_amount gets the locale as a second argument with en_GB as "
        "its default; parse_amount is not among the five public names. load_feed(path) keeps its "
        "signature and passes on what the header says.",
        edit(
            "tests/test_money.py",
            "    def test_german_decimals(self):\n"
            '        self.assertEqual(parse_amount("84,27"), 8427)\n\n'
            "    def test_german_thousands(self):\n"
            '        self.assertEqual(parse_amount("1.071,23"), 107123)\n',
            "    def test_german_decimals(self):\n"
            '        self.assertEqual(parse_amount("84,27", "de_DE"), 8427)\n\n'
            "    def test_german_thousands(self):\n"
            '        self.assertEqual(parse_amount("1.071,23", "de_DE"), 107123)\n'
            '        self.assertEqual(parse_amount("1.050,00", "de_DE"), 105000)\n\n'
            "    def test_a_dot_is_no_german_decimal(self):\n"
            "        with self.assertRaises(InvalidAmount):\n"
            '            parse_amount("84.27", "de_DE")\n\n'
            "    def test_a_comma_is_no_english_decimal(self):\n"
            "        with self.assertRaises(InvalidAmount):\n"
            '            parse_amount("84,27")\n\n'
            "    def test_an_unknown_locale_is_refused(self):\n"
            "        with self.assertRaises(InvalidAmount):\n"
            '            parse_amount("84,27", "xx_XX")\n',
        ),
        edit(
            "invoices/money.py",
            '_PLAIN = re.compile(r"-?\\d+(\\.\\d+)?")\n_GROUPED',
            '_PLAIN = re.compile(r"-?\\d+(\\.\\d+)?")\n',
        ),
    ),
    say(
        "That edit named a line which is not there; I remembered the file wrongly. I'll read it again "
        "and replace what it really has.",
        read("invoices/money.py"),
    ),
    say(
        "A comma may only stand where thousands are grouped: three digits behind it. That makes the "
        "silent case an error for English feeds too.",
        edit(
            "invoices/money.py",
            '_PLAIN = re.compile(r"-?\\d+(\\.\\d+)?")\n',
            "SEPARATORS = {\n"
            '    "en_GB": (",", "."),\n'
            '    "de_DE": (".", ","),\n'
            "}\n"
            '"""By locale: what groups thousands, and what begins the decimals."""\n',
        ),
        edit(
            "invoices/money.py",
            "def parse_amount(text):\n"
            '    """Cents of an amount as it stands in a feed: "1,234.56" -> 123456."""\n'
            '    plain = text.strip().replace(" ", "").replace(",", "")\n'
            "    if not _PLAIN.fullmatch(plain):\n"
            '        raise InvalidAmount(text, "not a number")\n',
            'def parse_amount(text, locale="en_GB"):\n'
            '    """Cents of an amount as a feed of this locale writes it.\n\n'
            '    "1,234.56" in en_GB and "1.234,56" in de_DE are both 123456.\n'
            '    """\n'
            "    group, point = SEPARATORS[locale]\n"
            '    trimmed = text.strip().replace(" ", "")\n'
            "    if not _pattern(group, point).fullmatch(trimmed):\n"
            '        raise InvalidAmount(text, f"not a number in {locale}")\n'
            '    plain = trimmed.replace(group, "").replace(point, ".")\n',
        ),
        edit(
            "invoices/money.py",
            "def multiply(cents, factor):",
            "def _pattern(group, point):\n"
            '    """Digits, plain or grouped by three, and decimals."""\n'
            "    g, p = re.escape(group), re.escape(point)\n"
            '    return re.compile(rf"-?(\\d+|\\d{{1,3}}({g}\\d{{3}})+)({p}\\d+)?")\n\n\n'
            "def multiply(cents, factor):",
        ),
    ),
    say(
        "",
        edit(
            "invoices/feed.py",
            "        return tuple(_invoices(path, header, rows))",
            "        return tuple(_invoices(path, header, rows))  # amounts as the header's locale has them",
        ),
        edit(
            "invoices/feed.py",
            "        lines.append(_line(path, index, row))",
            '        lines.append(_line(path, index, row, header["locale"]))',
        ),
        edit(
            "invoices/feed.py",
            "def _line(path, index, row):",
            "def _line(path, index, row, locale):",
        ),
        edit(
            "invoices/feed.py",
            'unit_price=parse_amount(row["unit_price"]),',
            'unit_price=parse_amount(row["unit_price"], locale),',
        ),
    ),
    say("Now the whole suite.", ALL_TESTS),
    say(
        "The suite finds one mistake of mine: an unknown locale raises KeyError instead of "
        'InvalidAmount. And there is one that it does not find: header["locale"] fails for a feed '
        "without a locale, exactly the case that you named, Acme's. read_header should fill in en_GB.",
        edit(
            "invoices/money.py",
            "    group, point = SEPARATORS[locale]\n",
            "    if locale not in SEPARATORS:\n"
            '        raise InvalidAmount(text, f"unknown locale {locale!r}")\n'
            "    group, point = SEPARATORS[locale]\n",
        ),
        edit(
            "invoices/feed.py",
            "    return fields\n",
            '    return {"locale": "en_GB", **fields}\n',
        ),
        edit(
            "invoices/feed.py",
            "        return tuple(_invoices(path, header, rows))  # amounts as the header's locale has them",
            "        return tuple(_invoices(path, header, rows))",
        ),
    ),
    say(
        "And tests for feeds, so that the header stays connected to the amounts.",
        edit(
            "tests/test_feed.py",
            "    def test_a_missing_header_is_refused(self):",
            "    def test_amounts_are_read_as_the_header_says(self):\n"
            '        header = "# supplier=nordwind; currency=EUR; locale=de_DE\\n"\n'
            "        (invoice,) = load_feed(\n"
            "            feed('NW-1,2026-03-03,Tape,1,\"1.071,23\",0.19', header=header)\n"
            "        )\n"
            "        self.assertEqual(invoice.lines[0].unit_price, 107123)\n\n"
            "    def test_without_a_locale_amounts_are_english(self):\n"
            '        header = "# supplier=acme; currency=EUR\\n"\n'
            "        (invoice,) = load_feed(\n"
            "            feed('A-1,2026-03-03,Tape,1,\"1,071.23\",0.20', header=header)\n"
            "        )\n"
            "        self.assertEqual(invoice.lines[0].unit_price, 107123)\n\n"
            "    def test_a_missing_header_is_refused(self):",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "Only the old rounding failure is left. Now the real feeds: book all of them into a ledger of "
        "their own and compare with the one in production, invoice by invoice.",
        bash(
            "mkdir -p build && rm -f build/ledger.json && "
            "python3 -m invoices nightly --feeds feeds --ledger build/ledger.json",
            "Book all feeds into a new ledger",
        ),
        bash(
            "python3 - <<'END'\n"
            "import json\n"
            "old = {e['key']: e for e in json.load(open('ledger.json'))}\n"
            "new = {e['key']: e for e in json.load(open('build/ledger.json'))}\n"
            "for key in sorted(new):\n"
            "    was = old.get(key, {}).get('gross')\n"
            "    if was != new[key]['gross']:\n"
            "        print(f\"{key:<20} {new[key]['date']} was {was!s:>12} is {new[key]['gross']:>10}\")\n"
            "print(len(old), len(new), set(old) - set(new))\n"
            "END",
            "Compare the two ledgers",
        ),
    ),
    say(
        "All feeds are booked now, only Nordwind's invoices differ, and every other amount is the same "
        "to the cent. I commit this step.",
        bash("git diff", "Review before the commit"),
        bash(
            "git add -A && git commit -qm 'Read amounts as the locale of the feed writes them' && "
            "git log --oneline | head -3",
            "Commit",
        ),
    ),
    say(
        "The cause: Nordwind came on 2026-03-03 with amounts in German notation, and parse_amount "
        "dropped commas whatever the locale. Three effects: amounts with a dot and cents were refused "
        "(the failed feeds of 03-03, 03-06 and 03-10), amounts like 84,27 were booked a hundred times "
        "too high, and 1.050,00 in NW-20450 a thousand times too low.\n\n"
        "parse_amount(text, locale) now follows the locale of the feed's header; without one it is "
        "en_GB. The public API is unchanged. I ran the whole suite: all pass but "
        "test_tax_is_rounded_once_per_rate, which failed before too. The ledger in production is not "
        "touched yet."
    ),
)

ROUNDING = (
    User(
        "Good. Fix the rounding as well: finance agreed with the auditors (AUD-2026-014) that tax is "
        "rounded once per rate and invoice, half to even. I want to know which booked invoices "
        "change by that, before you commit."
    ),
    say(
        "The test says the same as AUD-2026-014. by_rate() is already there and unused.",
        read("invoices/totals.py"),
        read("tests/test_totals.py"),
        grep("by_rate|multiply", "invoices"),
    ),
    say(
        "First the numbers as they are now, to compare with.",
        bash(
            "cat > build/totals.py <<'END'\n"
            "import sys\n"
            "from pathlib import Path\n"
            "from invoices import load_feed, total_of\n"
            "for path in sorted(Path('feeds').glob('*.csv')):\n"
            "    for invoice in load_feed(path):\n"
            "        print(invoice.key, invoice.date, *total_of(invoice))\n"
            "END\n"
            "PYTHONPATH=. python3 build/totals.py > build/before.txt; "
            "wc -l build/before.txt; head -n 40 build/before.txt",
            "Totals of all invoices before the change",
        ),
    ),
    say(
        "",
        edit(
            "invoices/totals.py",
            "    net = tax = 0\n"
            "    for line in invoice.lines:\n"
            "        amount = line.quantity * line.unit_price\n"
            "        net += amount\n"
            "        tax += multiply(amount, line.tax_rate)\n"
            "    return Totals(net=net, tax=tax, gross=net + tax)\n",
            "    rates = by_rate(invoice)\n"
            "    net = sum(rates.values())\n"
            "    # Once per rate and invoice, half to even: agreed with the auditors, AUD-2026-014.\n"
            "    tax = sum(multiply(amount, rate) for rate, amount in rates.items())\n"
            "    return Totals(net=net, tax=tax, gross=net + tax)\n",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "All 44 tests pass, for the first time today. Which invoices change?",
        bash(
            "PYTHONPATH=. python3 build/totals.py > build/after.txt; "
            "diff build/before.txt build/after.txt | grep '^[<>]'; "
            "diff build/before.txt build/after.txt | grep -c '^>'",
            "Compare totals before and after",
        ),
    ),
    say(
        "Every difference is one or two cents of tax. I'd also like a test for the half-cent case, "
        "because half to even is what finance and auditors may look at first.",
        edit(
            "tests/test_totals.py",
            "class ByRate(unittest.TestCase):",
            "class HalfCents(unittest.TestCase):\n"
            "    def test_half_a_cent_goes_to_the_even_side(self):\n"
            "        # 5% of 2.50 is 12.5 cents, of 3.50 it is 17.5 cents (AUD-2026-014).\n"
            '        self.assertEqual(total_of(invoice(Line("A", 1, 250, "0.05"))).tax, 12)\n'
            '        self.assertEqual(total_of(invoice(Line("A", 1, 350, "0.05"))).tax, 18)\n\n\n'
            "class ByRate(unittest.TestCase):",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "",
        bash(
            "git add -A && git commit -qm 'Round tax once per rate and invoice (AUD-2026-014)' && "
            "git show --stat --oneline HEAD",
            "Commit",
        ),
    ),
    say(
        "Done: tax is rounded once per rate and invoice, half to even, with a comment that names "
        "AUD-2026-014. The list above shows every booked invoice that changes; the differences are "
        "one or two cents each. total_of(invoice) keeps its signature, and the whole suite passes "
        "(45 tests)."
    ),
)

SINCE = (
    Pause(8),
    User(
        "Back with a coffee. Operations must rebook everything from 2026-03-03 on. Give the nightly "
        "command an option --since DATE that books only feeds of that day or later. Remember that "
        "run_nightly is public."
    ),
    say(
        "run_nightly(feeds, ledger) stays as it is. I look at the command line and at who uses it.",
        read("invoices/cli.py"),
        read("invoices/nightly.py"),
        read("tests/test_nightly.py"),
        grep("run_nightly", "."),
    ),
    say(
        "The loop can move into a function book_feeds(paths, ledger), which run_nightly calls with "
        "all feeds and the command with those that --since leaves. The date is in the file name, "
        "<supplier>-<date>.csv, as the README says.",
        write(
            "invoices/nightly.py",
            '"""The nightly job: book every feed of a folder."""\n\n'
            "import logging\n"
            "import re\n"
            "from pathlib import Path\n\n"
            "from invoices.feed import FeedError, load_feed\n"
            "from invoices.store import Ledger\n"
            "from invoices.totals import total_of\n\n"
            'log = logging.getLogger("invoices.nightly")\n'
            '_DATE = re.compile(r"-(\\d{4}-\\d{2}-\\d{2})$")\n\n\n'
            "def run_nightly(feeds, ledger):\n"
            '    """Book every feed in the folder `feeds`; return the number of feeds that failed."""\n'
            "    return book_feeds(feeds_of(feeds), ledger)\n\n\n"
            'def feeds_of(folder, since=""):\n'
            '    """Feed files of a folder, oldest name first; with `since`, of that day or later."""\n'
            '    return [p for p in sorted(Path(folder).glob("*.csv")) if date_of(p) >= since]\n\n\n'
            "def date_of(path):\n"
            '    """The date in a feed\'s name; empty when it has none."""\n'
            "    found = _DATE.search(path.stem)\n"
            '    return found[1] if found else ""\n\n\n'
            "def book_feeds(paths, ledger):\n"
            '    """Book these feeds; return the number of those that failed."""\n'
            "    book = Ledger(ledger)\n"
            "    failed = 0\n"
            "    for path in paths:\n"
            "        try:\n"
            "            invoices = load_feed(path)\n"
            "        except FeedError as error:\n"
            '            log.error("feed failed: %s", error)\n'
            "            failed += 1\n"
            "            continue\n"
            "        for invoice in invoices:\n"
            "            book.book(invoice, total_of(invoice))\n"
            '        log.info("feed booked: %s, %d invoices", path.name, len(invoices))\n'
            "    book.save()\n"
            "    return failed\n",
        ),
        edit(
            "invoices/cli.py",
            '    nightly.add_argument("--ledger", default="ledger.json")\n',
            '    nightly.add_argument("--ledger", default="ledger.json")\n'
            '    nightly.add_argument("--since", default="", metavar="DATE", type=iso_date)\n',
        ),
        edit(
            "invoices/cli.py",
            "        return run_nightly(arguments.feeds, arguments.ledger)\n",
            "        paths = feeds_of(arguments.feeds, arguments.since)\n"
            "        return book_feeds(paths, arguments.ledger)\n",
        ),
        edit(
            "invoices/cli.py",
            "from invoices.nightly import run_nightly\n",
            "from invoices.nightly import book_feeds, feeds_of\n",
        ),
        edit(
            "invoices/cli.py",
            "def main(argv=None):",
            "def iso_date(text):\n"
            '    """A date as 2026-03-03."""\n'
            "    return datetime.date.fromisoformat(text).isoformat()\n\n\n"
            "def main(argv=None):",
        ),
    ),
    say(
        "",
        bash("python3 -m invoices nightly --since 2026-03-09 --ledger build/since.json", "Try it"),
        bash(
            "python3 -m invoices nightly --since last-week --ledger build/since.json", "A bad date"
        ),
    ),
    say(
        "I use datetime and never import it.",
        edit(
            "invoices/cli.py",
            "import argparse\nimport logging\n",
            "import argparse\nimport datetime\nimport logging\n",
        ),
        bash("python3 -m invoices nightly --since 2026-03-09 --ledger build/since.json", "Try it"),
        bash(
            "python3 -m invoices nightly --since last-week --ledger build/since.json", "A bad date"
        ),
        bash(
            "python3 -m invoices nightly --since 2026-03-09 --ledger build/since.json", "Once more"
        ),
        bash(
            "grep -c '\"key\"' build/since.json; grep '\"key\"' build/since.json | sort | uniq -d | head -40",
            "Count entries",
        ),
    ),
    say(
        "Good that I ran it twice: the second run booked every invoice again, the ledger now holds "
        "each one two times. Ledger.book appends without looking. For a rebooking that is exactly "
        "wrong, because the entries since 2026-03-03 are already there with wrong amounts.",
        read("invoices/store.py"),
        read("tests/test_store.py"),
        steer=(
            "Yes, make booking idempotent: an invoice with the same key replaces the entry it had, "
            "in the same place. And log a warning when a replaced amount differs."
        ),
    ),
    say(
        "Replace in place, and a warning when gross differs. Tests first again.",
        edit(
            "tests/test_store.py",
            "    def test_without_saving_nothing_is_written(self):",
            "    def test_booking_twice_leaves_one_entry(self):\n"
            "        ledger = Ledger(self.path)\n"
            "        ledger.book(WRAP, total_of(WRAP))\n"
            "        ledger.book(WRAP, total_of(WRAP))\n"
            "        self.assertEqual(len(ledger.entries), 1)\n\n"
            "    def test_a_new_amount_replaces_the_old_one_in_its_place(self):\n"
            "        ledger = Ledger(self.path)\n"
            '        other = Invoice("A-2", "acme", "2026-03-02", lines=WRAP.lines)\n'
            "        ledger.book(WRAP, total_of(WRAP))\n"
            "        ledger.book(other, total_of(other))\n"
            '        with self.assertLogs("invoices.store", "WARNING") as logs:\n'
            "            ledger.book(WRAP, total_of(WRAP)._replace(gross=1))\n"
            '        self.assertEqual([e["gross"] for e in ledger.entries], [1, 4080])\n'
            '        self.assertIn("acme/A-1 was booked with 4080, now with 1", logs.output[0])\n\n'
            "    def test_without_saving_nothing_is_written(self):",
        ),
        edit(
            "invoices/store.py",
            '        """Add an invoice to the ledger."""\n'
            "        self.entries.append(\n"
            "            {\n"
            '                "key": invoice.key,\n'
            '                "date": invoice.date,\n'
            '                "currency": invoice.currency,\n'
            '                "net": totals.net,\n'
            '                "tax": totals.tax,\n'
            '                "gross": totals.gross,\n'
            "            }\n"
            "        )\n",
            '        """Add an invoice, or replace the entry that it already has."""\n'
            "        entry = {\n"
            '            "key": invoice.key,\n'
            '            "date": invoice.date,\n'
            '            "currency": invoice.currency,\n'
            '            "net": totals.net,\n'
            '            "tax": totals.tax,\n'
            '            "gross": totals.gross,\n'
            "        }\n"
            "        place = self._places.setdefault(invoice.key, len(self.entries))\n"
            "        if place == len(self.entries):\n"
            "            self.entries.append(entry)\n"
            "            return\n"
            '        was = self.entries[place]["gross"]\n'
            '        if was != entry["gross"]:\n'
            '            log.warning("%s was booked with %d, now with %d", invoice.key, was, totals.gross)\n'
            "        self.entries[place] = entry\n",
        ),
        edit(
            "invoices/store.py",
            "        self.entries = self._load()\n",
            "        self.entries = self._load()\n"
            '        self._places = {entry["key"]: n for n, entry in enumerate(self.entries)}\n',
        ),
        edit(
            "invoices/store.py",
            "import json\nimport os\nfrom pathlib import Path\n",
            'import json\nimport logging\nimport os\nfrom pathlib import Path\n\nlog = logging.getLogger("invoices.store")\n',
        ),
    ),
    say(
        "Tests for --since, too; then everything.",
        edit(
            "tests/test_nightly.py",
            "    def test_an_empty_folder_is_no_failure(self):",
            "    def test_since_leaves_out_older_feeds(self):\n"
            '        for day in ("2026-03-02", "2026-03-03", "2026-03-04"):\n'
            '            self.put(f"acme-{day}.csv", FEED)\n'
            '        found = [path.name for path in feeds_of(self.folder, "2026-03-03")]\n'
            '        self.assertEqual(found, ["acme-2026-03-03.csv", "acme-2026-03-04.csv"])\n\n'
            "    def test_a_second_run_changes_nothing(self):\n"
            '        self.put("acme-2026-03-02.csv", FEED)\n'
            "        run_nightly(self.folder, self.ledger)\n"
            "        before = self.ledger.read_bytes()\n"
            "        run_nightly(self.folder, self.ledger)\n"
            "        self.assertEqual(self.ledger.read_bytes(), before)\n\n"
            "    def test_an_empty_folder_is_no_failure(self):",
        ),
        edit(
            "tests/test_nightly.py",
            "from invoices import run_nightly\n",
            "from invoices import run_nightly\nfrom invoices.nightly import feeds_of\n",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "All green. A rehearsal on a copy of the production ledger, with the warnings that operations "
        "would see.",
        bash(
            "cp ledger.json build/rehearsal.json && "
            "python3 -m invoices nightly --since 2026-03-03 --ledger build/rehearsal.json",
            "Rehearse the rebooking",
        ),
        bash(
            "cp ledger.json build/again.json && for n in 1 2; do python3 -m invoices nightly "
            "--since 2026-03-03 --ledger build/again.json 2>&1 | grep -c WARNING; done; "
            "cmp build/rehearsal.json build/again.json && echo same",
            "Run it twice on another copy",
        ),
    ),
    say(
        "",
        bash("git diff --stat; git diff invoices/store.py invoices/cli.py", "Review"),
        bash(
            "git add -A && git commit -qm 'nightly --since DATE; booking is idempotent' && "
            "git log --oneline | head -5",
            "Commit",
        ),
    ),
    say(
        "`python3 -m invoices nightly --since 2026-03-03` books only feeds of that day or later. "
        "Booking is idempotent now: an invoice with the same key replaces its entry in place, and a "
        "changed amount is logged as a warning. In the rehearsal on a copy the second run changed "
        "nothing. run_nightly(feeds, ledger) is as it was; the whole suite passes."
    ),
)

REPORT = (
    User(
        "Billing needs a list: reports/affected.md with every Nordwind invoice that was booked wrongly "
        "before the fix, with number, date, what was booked, what is right and the difference, largest "
        "difference first. Invoices that were not booked at all belong in a second table. Only what "
        "came from the notation, not the one or two cents of AUD-2026-014, so compare at the old "
        "rounding, and say so in the text."
    ),
    say(
        "I need the totals with the right notation but the old rounding per line. A small script can "
        "do that without touching the package.",
        write(
            "scripts/affected.py",
            '"""Which Nordwind invoices were booked wrongly because of their notation."""\n\n'
            "import json\n"
            "import sys\n"
            "from pathlib import Path\n\n"
            "from invoices import load_feed\n"
            "from invoices.money import format_amount, multiply\n\n\n"
            "def gross_per_line(invoice):\n"
            '    """Gross as it was rounded before AUD-2026-014: tax line by line."""\n'
            "    amounts = [(line.quantity * line.unit_price, line.tax_rate) for line in invoice.lines]\n"
            "    return sum(amount + multiply(amount, rate) for amount, rate in amounts)\n\n\n"
            "def main(ledger, feeds):\n"
            '    booked = {e["key"]: e["gross"] for e in json.loads(Path(ledger).read_text())}\n'
            "    wrong, missing = [], []\n"
            '    for path in sorted(Path(feeds).glob("nordwind-*.csv")):\n'
            "        for invoice in load_feed(path):\n"
            "            right = gross_per_line(invoice)\n"
            "            was = booked.get(invoice.key)\n"
            "            if was is None:\n"
            "                missing.append((invoice, right))\n"
            "            elif was != right:\n"
            "                wrong.append((invoice, was, right))\n"
            "    wrong.sort(key=lambda row: -abs(row[1] - row[2]))\n"
            '    print("# Nordwind invoices booked wrongly\\n")\n'
            '    print("Compared at the rounding in force when they were booked (tax line by line).\\n")\n'
            '    print("| number | date | booked | right | difference |\\n|---|---|--:|--:|--:|")\n'
            "    for invoice, was, right in wrong:\n"
            "        cells = [format_amount(n) for n in (was, right, was - right)]\n"
            "        print(f\"| {invoice.number} | {invoice.date} | {' | '.join(cells)} |\")\n"
            '    print("\\n## Not booked at all\\n\\n| number | date | right |\\n|---|---|--:|")\n'
            "    for invoice, right in missing:\n"
            '        print(f"| {invoice.number} | {invoice.date} | {format_amount(right)} |")\n'
            "    total = sum(was - right for _, was, right in wrong)\n"
            '    print(f"\\n{len(wrong)} wrong by {format_amount(total)} in all, {len(missing)} missing.")\n\n\n'
            "main(*sys.argv[1:])\n",
        ),
    ),
    say(
        "",
        bash(
            "mkdir -p reports && python3 scripts/affected.py ledger.json feeds > reports/affected.md",
            "Write the report",
        ),
    ),
    say(
        "A script in scripts/ does not see the package beside it. With PYTHONPATH it will.",
        bash(
            "PYTHONPATH=. python3 scripts/affected.py ledger.json feeds > reports/affected.md && "
            "cat reports/affected.md",
            "Write the report",
        ),
    ),
    say(
        "I'd rather check two of these by hand, from the feed itself: NW-20450, which was too low in "
        "one line, and the largest one in the table.",
        bash("grep -h 'NW-20450' feeds/*.csv; grep 'NW-20450' reports/affected.md", "NW-20450"),
        bash(
            "number=$(sed -n '7p' reports/affected.md | cut -d' ' -f2); grep -h \"$number,\" feeds/*.csv; "
            'grep "$number" reports/affected.md',
            "The largest difference",
        ),
        bash(
            "python3 -c \"import json; print(*[e for e in json.load(open('ledger.json')) "
            "if 'NW-20450' in e['key']])\"",
            "The entry in the ledger",
        ),
    ),
    say(
        "Both agree with the feed, line by line. One thing to mention in the text: an invoice can be "
        "wrong in both directions, a line too high and a line too low, as NW-20450 is.",
        edit(
            "scripts/affected.py",
            '(tax line by line).\\n")\n',
            '(tax line by line).\\n")\n'
            '    print("Amounts with a comma were read a hundred times too high; amounts such as 1.050,00")\n'
            '    print("a thousand times too low. Both can occur in one invoice (NW-20450).\\n")\n',
        ),
    ),
    say(
        "",
        bash(
            "PYTHONPATH=. python3 scripts/affected.py ledger.json feeds > reports/affected.md && "
            "head -n 14 reports/affected.md && tail -n 3 reports/affected.md",
            "Write the report again",
        ),
        ALL_TESTS,
    ),
    say(
        "",
        bash(
            "git add -A && git commit -qm 'Report for billing: Nordwind invoices booked wrongly' && "
            "git log --oneline | head -6",
            "Commit",
        ),
    ),
    say(
        "reports/affected.md is there: every wrongly booked invoice with booked, right and difference, "
        "largest first, and a second table of those from the failed feeds of 03-03, 03-06 and 03-10. "
        "It compares at the old rounding, so AUD-2026-014 plays no part, and says so. Two invoices "
        "checked by hand against the feed. Whole suite green."
    ),
)

CHECK = (
    User(
        "One more thing. The README of config/service.toml says 'read by operations, checked by "
        "nobody'. Add a command `invoices check` that validates both files in config/: unknown keys, "
        "missing keys, wrong types, a supplier's locale that parse_amount does not know, tax rates "
        "that are no decimal fractions. One line a problem, exit status 1 if there are any."
    ),
    say(
        "Both files again, and what the code reads of them today.",
        read("config/service.toml"),
        read("config/suppliers.toml"),
        grep("toml|config", "invoices"),
        read("invoices/money.py"),
    ),
    say(
        "Nothing reads them but people. tomllib is in the standard library from 3.11 on. I write the "
        "expected shape down as data, so that adding a key means adding one line.",
        write(
            "invoices/check.py",
            '"""Whether the files in config/ say what they may say."""\n\n'
            "import tomllib\n"
            "from decimal import Decimal, InvalidOperation\n"
            "from pathlib import Path\n\n"
            "from invoices.money import SEPARATORS\n\n"
            "SERVICE = {\n"
            '    "nightly.feeds": str,\n'
            '    "nightly.ledger": str,\n'
            '    "nightly.retries": int,\n'
            '    "nightly.retry_wait_seconds": int,\n'
            '    "nightly.alert_channel": str,\n'
            '    "nightly.stop_on_error": bool,\n'
            '    "ledger.currency": str,\n'
            '    "ledger.round": str,\n'
            '    "log.path": str,\n'
            '    "log.level": str,\n'
            '    "log.keep_days": int,\n'
            "}\n"
            'SUPPLIER = {"name": str, "locale": str, "tax": list, "contact": str}\n'
            'OPTIONAL = {"since": str}\n\n\n'
            "def check(folder):\n"
            '    """Every problem of both files, one line each."""\n'
            "    folder = Path(folder)\n"
            '    yield from _service(folder / "service.toml")\n'
            '    yield from _suppliers(folder / "suppliers.toml")\n\n\n'
            "def _load(path):\n"
            '    return tomllib.loads(path.read_text(encoding="utf-8"))\n\n\n'
            "def _service(path):\n"
            "    found = {\n"
            '        f"{section}.{key}": value\n'
            "        for section, values in _load(path).items()\n"
            "        for key, value in values.items()\n"
            "    }\n"
            "    yield from _shape(path.name, found, SERVICE, {})\n\n\n"
            "def _suppliers(path):\n"
            "    for supplier, values in _load(path).items():\n"
            '        where = f"{path.name}: {supplier}"\n'
            "        yield from _shape(where, values, SUPPLIER, OPTIONAL)\n"
            '        if values.get("locale") not in SEPARATORS:\n'
            "            yield f\"{where}: unknown locale {values.get('locale')!r}\"\n"
            '        for rate in values.get("tax", []):\n'
            "            if not _is_fraction(rate):\n"
            '                yield f"{where}: tax rate {rate!r} is no decimal fraction"\n\n\n'
            "def _shape(where, found, required, optional):\n"
            "    known = {**required, **optional}\n"
            "    for key in required.keys() - found.keys():\n"
            '        yield f"{where}: {key} is missing"\n'
            "    for key, value in found.items():\n"
            "        if key not in known:\n"
            '            yield f"{where}: unknown key {key}"\n'
            "        elif not isinstance(value, known[key]):\n"
            '            yield f"{where}: {key} should be {known[key].__name__}, is {value!r}"\n\n\n'
            "def _is_fraction(rate):\n"
            "    try:\n"
            "        return 0 <= Decimal(rate) < 1\n"
            "    except InvalidOperation:\n"
            "        return False\n",
        ),
        edit(
            "invoices/cli.py",
            "    return root\n",
            '    check = commands.add_parser("check", help="validate the files in config/")\n'
            '    check.add_argument("--config", default="config")\n'
            "    return root\n",
        ),
        edit(
            "invoices/cli.py",
            "    for entry in Ledger(arguments.ledger)",
            '    if arguments.command == "check":\n'
            "        problems = list(config_problems(arguments.config))\n"
            '        print("\\n".join(problems) or "config: no problems")\n'
            "        return int(bool(problems))\n"
            "    for entry in Ledger(arguments.ledger)",
        ),
        edit(
            "invoices/cli.py",
            "from invoices.money import format_amount\n",
            "from invoices.check import check as config_problems\nfrom invoices.money import format_amount\n",
        ),
    ),
    say(
        "",
        bash("python3 -m invoices check; echo status $?", "Check the real files"),
    ),
    say(
        "Now with files that are wrong in every way that you named.",
        bash(
            "rm -rf build/config && cp -r config build/config && "
            "sed -i 's/retries = 3/retries = \"three\"/; /keep_days/d; s/level/levle/' "
            "build/config/service.toml && "
            'sed -i \'s/de_DE/de_AT/; s/"0.25"/"25%"/; s/contact = "ap/fax = "ap/\' '
            "build/config/suppliers.toml && "
            "for n in 1 2 3; do python3 -m invoices check --config build/config; echo status $?; done",
            "Check broken files",
        ),
    ),
    say(
        "Each problem is found. The missing keys come out of a set, so their order is nobody's "
        "promise; I sort them. And true is an int for isinstance: retries = true would pass.",
        edit(
            "invoices/check.py",
            "    for key in required.keys() - found.keys():\n",
            "    for key in sorted(required.keys() - found.keys()):\n",
        ),
        edit(
            "invoices/check.py",
            "        elif not isinstance(value, known[key]):\n",
            "        elif type(value) is not known[key]:  # not isinstance: True is an int\n",
        ),
        write(
            "tests/test_check.py",
            "import tempfile\n"
            "import unittest\n"
            "from pathlib import Path\n\n"
            "from invoices.check import check\n\n"
            'CONFIG = Path(__file__).parent.parent / "config"\n\n\n'
            "class Check(unittest.TestCase):\n"
            "    def problems(self, name, old, new):\n"
            "        folder = Path(tempfile.mkdtemp())\n"
            "        for path in CONFIG.glob('*.toml'):\n"
            "            text = path.read_text()\n"
            "            if path.name == name:\n"
            "                self.assertIn(old, text)\n"
            "                text = text.replace(old, new)\n"
            "            (folder / path.name).write_text(text)\n"
            "        return list(check(folder))\n\n"
            "    def test_our_own_files_are_right(self):\n"
            "        self.assertEqual(list(check(CONFIG)), [])\n\n"
            "    def test_an_unknown_key(self):\n"
            "        found = self.problems('service.toml', 'retries', 'retriess')\n"
            "        self.assertEqual(\n"
            "            found,\n"
            "            [\n"
            "                'service.toml: nightly.retries is missing',\n"
            "                'service.toml: unknown key nightly.retriess',\n"
            "            ],\n"
            "        )\n\n"
            "    def test_a_wrong_type(self):\n"
            "        found = self.problems('service.toml', 'retries = 3', 'retries = true')\n"
            "        self.assertEqual(found, ['service.toml: nightly.retries should be int, is True'])\n\n"
            "    def test_an_unknown_locale(self):\n"
            "        found = self.problems('suppliers.toml', 'de_DE', 'de_AT')\n"
            "        self.assertEqual(found, [\"suppliers.toml: nordwind: unknown locale 'de_AT'\"])\n\n"
            "    def test_a_tax_rate_in_percent(self):\n"
            "        found = self.problems('suppliers.toml', '\"0.25\"', '\"25%\"')\n"
            "        self.assertEqual(\n"
            "            found, [\"suppliers.toml: borealis: tax rate '25%' is no decimal fraction\"]\n"
            "        )\n",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "Green. The comment in service.toml is no longer true, and the README should name the "
        "command.",
        edit(
            "config/service.toml",
            "# The nightly job. Read by operations, checked by nobody.\n",
            "# The nightly job. Read by operations; `python -m invoices check` checks it.\n",
        ),
        edit(
            "README.md",
            "    python -m invoices show 2026-03-03 --ledger ledger.json\n",
            "    python -m invoices nightly --since 2026-03-03     # only feeds of that day or later\n"
            "    python -m invoices show 2026-03-03 --ledger ledger.json\n"
            "    python -m invoices check                          # validate config/\n",
        ),
    ),
    say(
        "",
        ALL_TESTS,
    ),
    say(
        "",
        bash(
            "git add -A && git commit -qm 'invoices check: validate the files in config/' && "
            "git show --stat --oneline HEAD",
            "Commit",
        ),
    ),
    say(
        "`python3 -m invoices check` validates both files: unknown and missing keys, types, locales "
        "that parse_amount does not know, tax rates that are no fractions. One line a problem, exit "
        "status 1. Whole suite green."
    ),
)

CLOSE = (
    User(
        "Last round before we ship. Write a CHANGELOG.md entry for 3.1, prove to me that the public "
        "API is literally unchanged, and then sum up: cause, fixes, what operations has to run, and "
        "whether both rules were kept."
    ),
    say(
        "The proof first: signatures of the five names, at the first commit and now.",
        bash(
            "cat > build/api.py <<'END'\n"
            "import inspect\n"
            "import invoices\n"
            "for name in sorted(invoices.__all__):\n"
            "    print(name, inspect.signature(getattr(invoices, name)))\n"
            "END\n"
            "first=$(git rev-list --max-parents=0 HEAD) && rm -rf build/first && mkdir build/first && "
            "git archive $first | tar x -C build/first && "
            "(cd build/first && PYTHONPATH=. python3 ../api.py) > build/api-first.txt && "
            "PYTHONPATH=. python3 build/api.py > build/api-now.txt && cat build/api-now.txt && "
            "diff build/api-first.txt build/api-now.txt && echo identical; "
            "git diff --stat $first -- invoices/__init__.py invoices/model.py docs/api.md",
            "Compare the public signatures",
        ),
        bash("git log --stat --oneline | head -70", "What changed, commit by commit"),
    ),
    say(
        "Identical. Now everything that changed in the package, once more in one piece, for the "
        "changelog.",
        bash("git diff $(git rev-list --max-parents=0 HEAD) HEAD -- invoices", "The whole change"),
    ),
    say(
        "",
        write(
            "CHANGELOG.md",
            "# Changelog\n\n"
            "## 3.1\n\n"
            "- Amounts are read as the locale in the feed's header writes them (en_GB, de_DE; without "
            "one: en_GB).\n"
            "  Nordwind's amounts were refused or booked wrongly since 2026-03-03; see "
            "reports/affected.md.\n"
            "- A comma that groups no thousands is refused in English feeds; it used to be dropped.\n"
            "- Tax is rounded once per rate and invoice, half to even (AUD-2026-014).\n"
            "- Booking is idempotent: an invoice with the same key replaces its entry.\n"
            "- `nightly --since DATE`, `check`.\n\n"
            "The public API is unchanged.\n",
        ),
    ),
    say(
        "",
        ALL_TESTS,
        bash("python3 -m invoices check", "Check the config"),
        bash(
            "git add -A && git commit -qm 'Changelog for 3.1' && git status --short && "
            "git log --oneline",
            "Commit",
        ),
    ),
    say(
        "**Cause.** Nordwind writes 1.071,23 (locale de_DE). parse_amount dropped every comma, "
        "whatever the locale: feeds of 03-03, 03-06 and 03-10 were refused, amounts like 84,27 were "
        "booked a hundred times too high, and 1.050,00 in NW-20450 a thousand times too low.\n\n"
        "**Fixes.** Amounts follow the locale in the feed's header, as you asked, never the look of the "
        "amount; tax is rounded once per rate and invoice (AUD-2026-014); booking is idempotent and "
        "warns when an amount changes; `--since` and `check` are new; reports/affected.md is for "
        "billing.\n\n"
        "**Operations** runs, once: `python3 -m invoices check && python3 -m invoices nightly --since "
        "2026-03-03`. It logs one warning for each invoice whose amount changes; a second run changes "
        "nothing.\n\n"
        "**Rules.** The five public names have literally the signatures they had, compared by "
        "script. The whole suite ran before every 'done', and it is green now."
    ),
)

STORY: tuple[User | Pause | Say, ...] = (
    *NIGHTLY_BUG,
    *ROUNDING,
    *SINCE,
    *REPORT,
    *CHECK,
    *CLOSE,
)
