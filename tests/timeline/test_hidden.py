"""What is hidden on request comes out nowhere: no piece of it of eight characters that no visible block has."""

import base64
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias, get_args

import attrs
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Decision,
    DocumentPart,
    Envelope,
    ErrorRecord,
    StructuredSummary,
    TextPart,
    Work,
    leaves,
    text_of,
)
from persistence import EventStore, open_store
from persistence.sessions import export_lines
from render import RungName, Summary
from tests import _builders as make
from tests._builders import Ids, open_timeline, response, steady, text, tool_use
from tests._tracing import Watched
from tests.timeline.report.pages import Page
from timeline import SummaryRequest, Timeline
from timeline.cli._main import obey
from timeline.engine._hiding import said_by, without_hidden
from timeline.gateway._reader import StoreReader
from timeline.react import reading_tools
from timeline.report import Prompting, report_html, reported_log
from timeline.report._description import descriptions

PIECE: Final = 8
"""Characters of a piece."""
STORES: Final = ("", "sqlite", "duckdb")
PROVIDERS: Final = ("anthropic", "openai.chat", "openai.responses", "gemini")

Outputs: TypeAlias = Iterator[tuple[str, str]]
"""What came out, and where."""


def secrets() -> st.SearchStrategy[str]:
    """Texts of any alphabet that nobody else says."""
    symbols = st.text("#=<$<+?\\*/|&!\"'`{}[]();:,.%^~@-_", min_size=12, max_size=40)
    emoji = st.text("🔑🐎🔋📎🌲🎲🦊🐸🍎🚀❤️‍🔥", min_size=12, max_size=20)
    letters = st.from_regex(r"[0-9]{1,3}[A-Za-z0-9]{12,30}", fullmatch=True)
    han = st.text("密碼是正確馬電池釘書機今日天氣很好請勿告訴別人", min_size=12, max_size=30)
    base = st.binary(min_size=12, max_size=40).map(lambda data: base64.b64encode(data).decode())
    words = st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=4, max_size=8)
    phrases = words.map(lambda each: "qx" + "qx ".join(each))
    anything = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=12)
    every = st.one_of(symbols, emoji, letters, han, base, phrases, anything)
    return every.map(lambda found: " ".join(found.split())).filter(_is_a_secret)


def _is_a_secret(text: str) -> bool:
    return len(text) >= 12 and len({*text}) >= 6 and "anthropic" not in text


def quoting(request: SummaryRequest) -> Summary:
    """A summariser that quotes all that it is given, cut at the front, at the end, and as JSON."""
    fold = request.range
    said = [said_by(entry.block) for entry in (*fold.folded, *fold.tail)][-12:]
    return Summary(
        summary=StructuredSummary(
            facts=tuple(f"It says …{each[len(each) // 3 :]}" for each in said),
            constraints=tuple(f"{each[: len(each) * 2 // 3]}…" for each in said),
            decisions=tuple(Decision(decision="So it is.", reason=each[5:]) for each in said),
            completed=tuple(Work(component=each, action="read") for each in said),
            errors=tuple(ErrorRecord(error=f"failed: {each[-11:]}") for each in said),
            state=". ".join(json.dumps(each) for each in said),
            plan="\n".join(each[3:] for each in said),
            turn_context=" ".join(said),
        )
    )


def failing(request: SummaryRequest) -> Summary:
    raise RuntimeError("; ".join(said_by(entry.block) for entry in request.range.folded))


SUMMARIZERS: Final[tuple[Callable[[SummaryRequest], Summary] | None, ...]] = (
    None,
    None,
    quoting,
    failing,
)


@attrs.define
class Play:
    """A timeline in which some blocks say a secret, in a store."""

    store: EventStore
    secret: str
    options: dict[str, Any]
    watched: Watched = attrs.field(factory=Watched)
    ids: Ids = attrs.field(factory=lambda: Ids("i"))
    timeline: Timeline = attrs.field(init=False)
    rounds: int = 0

    def __attrs_post_init__(self) -> None:
        self.timeline = self.open()

    def open(self, name: str = "talk") -> Timeline:
        return open_timeline(
            name, store=self.store, ids=self.ids, tracer=self.watched.tracer, **self.options
        )

    def record(self, *contents: dict[str, Any]) -> None:
        self.timeline.record(response(*contents, id=self.ids()), format="anthropic")

    # What says it.

    def say(self, place: str) -> None:
        secret = self.secret
        getattr(self, f"_{place}")(f"We need {secret} for it.", secret)

    def _prompt(self, said: str, _: str) -> None:
        self.timeline.user(said)

    def _bare(self, _: str, secret: str) -> None:
        self.timeline.user(secret)

    def _demand(self, _: str, secret: str) -> None:
        self.timeline.steer(f"You must always use {secret} there. We decided it.")

    def _followup(self, said: str, _: str) -> None:
        self.timeline.followup(said)

    def _note(self, said: str, _: str) -> None:
        self.timeline.note(said)

    def _plan(self, said: str, _: str) -> None:
        self.timeline.plan(said)

    def _attachment(self, said: str, _: str) -> None:
        self.timeline.attach("notes.txt", TextPart(text=said * 4))

    def _name(self, _: str, secret: str) -> None:
        self.timeline.attach(secret, TextPart(text="some words " * 60))

    def _document(self, said: str, _: str) -> None:
        part = DocumentPart(media_type="text/plain", data=said, name="a.txt")
        self.timeline.attach("a.txt", part)

    def _completion(self, said: str, secret: str) -> None:
        made = f"{said} The cause is that {secret} was rejected by the server in step 3."
        self.record(text(made))

    def _thinking(self, said: str, _: str) -> None:
        thought = {"type": "thinking", "thinking": said, "signature": "c2ln"}
        self.record(thought, text("I see."))

    def _standing(self, said: str, _: str) -> None:
        self.timeline.attach(said, standing=True)

    def _input(self, _: str, secret: str) -> None:
        self._round("Bash", {"command": f"deploy --token {secret}"}, "deployed")

    def _path(self, _: str, secret: str) -> None:
        self._round("Read", {"path": f"src/{secret}/a.py"}, "fine")

    def _result(self, said: str, secret: str) -> None:
        self._round("Bash", {"command": "cat .env"}, f"KEY={secret}\n" * 30 + said)

    def _error(self, said: str, secret: str) -> None:
        output = f"error: {secret} is refused\n{said}"
        self._round("Bash", {"command": "deploy"}, output, is_error=True)

    def _fields(self, _: str, secret: str) -> None:
        known = Envelope(key_fields={"token": secret, "path": f"out/{secret}.txt"})
        self._round("Bash", {"command": "deploy"}, "done " * 80, envelope=known)

    def _round(self, name: str, asked: dict[str, str], output: str, **more: Any) -> None:
        call = self.ids()
        self.record(tool_use(call, name, **asked))
        self.timeline.tool_result(call, output, **more)

    # What happens.

    def work(self) -> None:
        for _ in range(12):
            self.rounds += 1
            call, number = self.ids(), self.rounds
            asked = tool_use(call, "Read", path=f"lib/f{number}.py")
            self.record(text(f"I read {number}."), asked)
            self.timeline.tool_result(call, f"def f{number}(): pass\n" * 30)

    def do(self, act: str) -> None:
        timeline = self.timeline
        match act:
            case "fold":
                self.work()
                timeline.compact()
            case "render":
                timeline.render()
            case "expand" if timeline.view.compaction:
                timeline.expand()
            case "upgrade":
                timeline.upgrade_summary()
            case "reopen":
                timeline.flush()
                self.timeline = self.open(timeline.id)
            case "fork":
                timeline.flush()
                at = 1 + timeline.version // 3
                self.timeline = timeline.fork(f"{timeline.id}~", at=at)
                self.work()
            case _:
                pass

    @property
    def telling(self) -> list[str]:
        """The blocks that say it."""
        blocks = (b for _, b in make.blocks_in(self.timeline))
        return [b.id for b in blocks if self.secret in said_by(b) or self.secret in text_of(b)]

    # What comes out.

    def outputs(self) -> Outputs:
        yield from self._rendered()
        yield from self._shared()
        yield from self._read()
        yield from self._found()

    def _rendered(self) -> Outputs:
        timeline = self.timeline
        rendered = timeline.render()
        yield "request", leaves(rendered.request())
        yield "request as JSON", json.dumps(rendered.request(), ensure_ascii=False)
        yield "misfit", f"{rendered.cannot_fit} {rendered.notices}"
        if timeline.view.compaction:
            summary = timeline.view.compaction.event.summary
            yield "summary", leaves(msgspec.to_builtins(summary))
        for version in (1, timeline.version // 2, timeline.version):
            yield f"render_at {version}", leaves(timeline.render_at(version).request())

    def _shared(self) -> Outputs:
        timeline, log = self.timeline, self.timeline.events()
        shared = without_hidden(log)
        yield "export", "".join(export_lines(timeline.id, shared))
        events = [msgspec.to_builtins(e) for _, e in shared if isinstance(e, msgspec.Struct)]
        yield "export as texts", leaves(events)
        facts = {"name": "x", "title": "x", "timeline": "x"}
        prompting = Prompting(settings=timeline.settings)
        page = Page.of(report_html("x", [reported_log(log, prompting, facts, hidden=False)]))
        yield "report", leaves([page.json(name) for name in page.data])

    def _read(self) -> Outputs:
        timeline = self.timeline
        paths = [entry.path for entry in timeline.view.entries]
        paths += [f"v{number}" for number in range(1, timeline.version + 1)]
        paths += ["su:t1.conv.range.summary", "su:t1.conv.range.summary.2", "fi:t1.not there"]
        read, *_ = reading_tools(timeline)
        for path in paths:
            reply = str(read.call(path=path).output)
            yield f"read {path[:20]!r}", reply.replace(path, "")
        reader = StoreReader(store=self.store)
        yield "outline", str(reader.read_timeline(timeline=timeline.id, path="v1-").output)

    def _found(self) -> Outputs:
        timeline = self.timeline
        read, *_ = reading_tools(timeline)
        reader = StoreReader(store=self.store)
        for query in (words_of(self.secret), "type:user.attachment", "need"):
            found = timeline.search(query)
            yield "search", leaves([attrs.asdict(hit) for hit in found])
            for answer in (read.call(query=query), reader.search(query, timeline=timeline.id)):
                yield "search by a model", str(answer.output).replace(repr(query), "")
        yield (
            "description",
            str([about.prompt for _, about in descriptions(self.store, [timeline.id])]),
        )


PLACES: Final = (
    "prompt",
    "bare",
    "demand",
    "followup",
    "note",
    "plan",
    "attachment",
    "name",
    "document",
    "standing",
    "completion",
    "thinking",
    "input",
    "path",
    "result",
    "error",
    "fields",
)
ACTS: Final = ("fold", "fold", "render", "expand", "upgrade", "reopen", "fork")


def words_of(secret: str) -> str:
    """A query that finds the secret, where it may be found."""
    return "".join(sign if sign.isalnum() else " " for sign in secret[:20]).strip() or "need"


def commands(name: str, where: str, query: str, version: int) -> Outputs:
    """What the commands print about a timeline, and about a copy of what it was at a version."""
    at = ["--at", str(version)]
    asked = [["list"], ["list", "--json"], ["search", query, "--timeline", name]]
    asked += [[what, name] for what in ("show", "render", "export")]
    asked += [[what, name, "--json"] for what in ("show", "propose", "account")]
    asked += [[what, name, *at] for what in ("show", "render")]
    asked += [["show", name, f"v{version}"], ["show", name, "su:t1.conv.range.summary"]]
    asked += [["fork", name, "copy", *at], ["render", "copy"]]
    for words in asked:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            obey([*words, "--store", where])
        printed = out.getvalue()
        rows = printed.splitlines() if words[0] == "export" else [printed]
        is_json = words[0] in ("export", "render") or "--json" in words
        read = leaves([json.loads(row) for row in rows if is_json and row])
        yield " ".join(words), f"{printed}\n{err.getvalue()}\n{read}".replace(repr(query), "")


def pieces(secret: str, visible: Sequence[str]) -> set[str]:
    """The pieces of a secret that no visible text has."""
    found = {secret[start : start + PIECE] for start in range(len(secret) - PIECE + 1)}
    return {
        piece for piece in found if not any(piece in " ".join(each.split()) for each in visible)
    }


def told(outputs: Outputs, wanted: set[str]) -> list[str]:
    """Where a piece comes out."""
    found: list[str] = []
    for where, output in outputs:
        said = " ".join(output.split())
        for piece in wanted:
            if (place := said.find(piece)) >= 0:
                found.append(f"{where}: {piece!r} in {said[max(place - 120, 0) : place + 60]!r}")
                break
    return found


def spans(watched: Watched) -> Outputs:
    for span in watched.spans():
        events = [each.attributes for each in span.events]
        yield span.name, f"{span.attributes} {events} {span.status.description}"


def assert_nothing(outputs: Outputs, wanted: set[str]) -> None:
    found = told(outputs, wanted)
    assert not found, "\n".join(found)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    orders = st.permutations(get_args(RungName)).map(lambda order: order[: draw(st.integers(1, 4))])
    policy = steady(
        rungs=draw(st.one_of(st.just(("summarize",)), orders)),
        externalize_tokens=draw(st.sampled_from((40, 1000))),
        pointer_tokens=draw(st.sampled_from((40, 200))),
        working_ratio=draw(st.sampled_from((0.0, 0.2))),
    )
    model = attrs.evolve(make.LOOSE, provider=draw(st.sampled_from(PROVIDERS)))
    found: dict[str, Any] = {
        "policy": policy,
        "model": model,
        "window": draw(st.sampled_from((3000, 8000))),
    }
    if summarizer := draw(st.sampled_from(SUMMARIZERS)):
        found["summarizer"] = summarizer
    return found


@given(
    secrets(),
    st.sampled_from(STORES),
    options(),
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=5),
    st.tuples(*[st.lists(st.sampled_from(ACTS), max_size=3)] * 2),
)
def test_no_piece_of_what_is_hidden_comes_out(
    secret: str,
    kind: str,
    chosen: dict[str, Any],
    places: list[str],
    acts: tuple[list[str], list[str]],
) -> None:
    with TemporaryDirectory() as folder:
        where = f"{kind}:///{folder}/s" if kind else "memory:"
        with closing(open_store(where)) as store:
            play = Play(store, secret, chosen)
            play.timeline.user("Deploy it.")
            for place in places:
                play.say(place)
            for act in acts[0]:
                play.do(act)
            play.timeline.flush()
            play.watched.exporter.clear()
            telling = play.telling
            if not telling:  # all of it was said after the fork
                return
            play.timeline.hide(*telling)
            others = (
                block for _, block in make.blocks_in(play.timeline) if block.id not in telling
            )
            wanted = pieces(secret, [said_by(block) for block in others])
            assert_nothing(play.outputs(), wanted)
            for act in acts[1]:
                play.do(act)
                assert_nothing(play.outputs(), wanted)
            name, version = play.timeline.id, play.timeline.flush()
            assert_nothing(spans(play.watched), wanted)
        if kind == "sqlite":  # what commands print does not depend on the store
            assert_nothing(commands(name, where, words_of(secret), version // 2), wanted)
