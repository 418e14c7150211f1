"""Requests in flight: whatever happens between a render and the recording of its answer, the provider
takes the next request, on every generation of models; and a reopened timeline sends the same bytes."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import attrs
import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import AlreadyRecordedError, MisuseError, RequestRendered, TextPart, TimelineId
from persistence import ArtifactDescription, MemoryStore
from render import Json, Model, Rendered
from tests._builders import Clock, Ids, open_timeline, request_bytes, steady
from timeline import Timeline, known_models
from timeline.fake_provider.wires._anthropic import rule_error
from timeline.fake_provider.wires._signature import sign

Step: TypeAlias = tuple[Any, ...]

TOOLS = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
OTHERS = [{"name": "peek", "description": "Peek.", "input_schema": {"type": "object"}}]
THINKING: dict[str, Json] = {
    "adaptive": {"type": "adaptive"},
    "enabled": {"type": "enabled", "budget_tokens": 1024},
}
MODELS = {model.name: model for model in known_models()}
GENERATIONS = {
    "bound": ("claude-sonnet-5-5", "adaptive"),
    "loose": ("claude-opus-4-8", "adaptive"),
    "either": ("claude-opus-4-6", "enabled"),
    "manual": ("claude-opus-4-5", "enabled"),
    "none": ("claude-haiku-3-5", ""),
}
"""One of each: how thinking is switched on, and what it is bound to."""


def test_every_model_is_of_one_of_these_generations() -> None:
    known = {_generation(MODELS[name], mode) for name, mode in GENERATIONS.values()}
    for model in MODELS.values():
        modes: list[str] = [mode for mode in model.thinking_modes if mode in THINKING]
        for mode in modes or [""]:
            same = _generation(model, mode) in known
            assert same or _generation(model, mode) == (False, "adaptive", True), model


def _generation(model: Model, mode: str) -> tuple[bool, str, bool]:
    return model.thinking_bound, mode, "enabled" in model.thinking_modes


@attrs.frozen
class Flown:
    """A request on its way to the provider, and the answer that it will get."""

    rendered: Rendered
    message: Json


@attrs.define
class Flight:
    """Does steps to a timeline; every request that is sent has to be taken."""

    model: str
    mode: str
    window: int
    clock: Clock = attrs.field(factory=Clock)
    store: MemoryStore = attrs.field(factory=MemoryStore)
    sent: int = 0
    _ids: Ids = attrs.field(factory=lambda: Ids("i"))
    _numbers: Ids = attrs.field(factory=Ids)
    _flying: list[Flown] = attrs.field(factory=list[Flown])
    _answered: set[str] = attrs.field(factory=set[str])
    timeline: Timeline = attrs.field(init=False)
    other: Timeline = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.timeline, self.other = self.open(), self.open()

    def open(self) -> Timeline:
        policy = steady(rounds_intact=2, prune_block_tokens=10, prune_tokens_min=50, keep_ratio=0.3)
        return open_timeline(
            store=self.store,
            clock=self.clock,
            ids=self._ids,
            model=self.model,
            window=self.window,
            policy=policy,
        )

    def run(self, steps: Sequence[Step]) -> "Flight":
        for kind, *rest in [*steps, ("send", "call", 1)]:
            getattr(self, f"_do_{kind}")(*rest)
            self._reopens_equal()
        self._do_reopen()
        self._do_send("call", 1)
        return self

    # The same bytes, live and reopened.

    def _reopens_equal(self) -> None:
        """Each of the two, unless somebody else has appended something that it has not seen yet."""
        both = (self.timeline, self.other)
        for timeline in both:
            timeline.flush()
        head = self.store.head(self.timeline.id)
        current = [timeline for timeline in both if timeline.version == head]
        shown = {
            request_bytes(each.snapshot().render(tools=TOOLS)) for each in (*current, self.open())
        }
        assert len(shown) == 1

    # Requests and answers.

    def _do_send(self, kind: str, calls: int) -> None:
        rendered = self.timeline.render(tools=TOOLS)
        if not rendered.fits or not rendered.messages:
            return
        request = self.taken(rendered)
        self._flying.append(Flown(rendered, self.message(request, kind, calls)))

    def taken(self, rendered: Rendered) -> Json:
        request = rendered.anthropic(max_tokens=2000)
        if self.mode:
            request["thinking"] = THINKING[self.mode]
        assert rendered.violations == ()
        assert rule_error(request, MODELS[self.model]) is None
        self.sent += 1
        return request

    def message(self, request: Json, kind: str, calls: int) -> Json:
        number = self._numbers()
        content: list[Json] = []
        if self.mode and (kind != "mute" or self.mode == "enabled"):
            text = f"thought {number}"
            proof = sign(text, request, MODELS[self.model])
            content.append({"type": "thinking", "thinking": text, "signature": proof})
        content.append({"type": "text", "text": f"answer {number}"})
        if kind == "server":
            own: Json = {"id": f"srvtoolu_{number}", "name": "web_search", "input": {}}
            content.append({"type": "server_tool_use", **own})
        elif kind != "text":
            content += [
                {"type": "tool_use", "id": f"toolu_{number}_{n}", "name": "look", "input": {"n": n}}
                for n in range(calls)
            ]
        stop = {"server": "pause_turn", "text": "end_turn"}.get(kind, "tool_use")
        return {"id": f"msg_{number}", "content": content, "stop_reason": stop}

    def run_round(self, kind: str) -> None:
        """A request, and its answer."""
        self._do_send(kind, 1)
        self._do_land(0, "self", named=True)

    def _do_land(self, index: int, who: str, named: bool) -> None:  # noqa: FBT001 -- data
        if not self._flying:
            return
        flown = self._flying.pop(index % len(self._flying))
        named = (
            named or flown.rendered.sent in self._answered
        )  # of two answers to one request, say so
        self._answered.add(flown.rendered.sent)
        rendered = flown.rendered if named else None
        self._who(who).record(flown.message, rendered=rendered)

    def _do_lose(self) -> None:
        if self._flying:
            self._flying.pop()

    def _do_look(self, with_tools: str) -> None:
        self.timeline.render(tools={"same": TOOLS, "other": OTHERS}.get(with_tools))

    def _who(self, who: str) -> Timeline:
        return self.other if who == "other" else self.timeline

    # What comes meanwhile.

    def _do_say(self, kind: str, who: str, lines: int) -> None:
        timeline, text = self._who(who), f"word {self._numbers()}\n" * lines
        if kind == "attach":
            timeline.attach("file.txt", TextPart(text=text))
        else:
            getattr(timeline, kind)(text)

    def _do_result(self, index: int, who: str, lines: int) -> None:
        """For a call that waits, or (late) for one that was shown as interrupted."""
        waiting = [call for group in self.timeline.view.groups for call in group.open_calls]
        if waiting:
            call = waiting[-1 - index % len(waiting)]
            with suppress(AlreadyRecordedError):  # it has come, late
                self._who(who).tool_result(call, f"result {self._numbers()} line\n" * lines)

    def _do_hide(self, index: int) -> None:
        if entries := self.timeline.view.entries:
            self.timeline.hide(entries[index % len(entries)].block.id)

    def _do_restore(self, index: int) -> None:
        hidden = [e for e in self.timeline.view.entries if e.original is not None]
        if hidden:
            self.timeline.restore(hidden[index % len(hidden)].block.id)

    def _do_compact(self) -> None:
        self.timeline.compact(tools=TOOLS)

    def _do_expand(self) -> None:
        try:
            self.timeline.expand()
        except MisuseError:
            assert self.timeline.view.compaction is None

    def _do_wait(self) -> None:
        self.clock.wait(400.0)

    def _do_reopen(self) -> None:
        self.timeline.close()
        self.timeline = self.open()


SIZES = st.sampled_from((1, 3, 30))
WHO = st.sampled_from(("self", "self", "other"))


def words() -> st.SearchStrategy[Step]:
    kinds = ("user", "steer", "followup", "note", "notice", "attach", "plan")
    return st.tuples(st.just("say"), st.sampled_from(kinds), WHO, SIZES)


def events() -> st.SearchStrategy[Step]:
    index = st.integers(0, 5)
    kinds = st.sampled_from(("call", "call", "call", "text", "server", "mute"))
    sends = st.tuples(st.just("send"), kinds, st.integers(1, 2))
    lands = st.tuples(st.just("land"), index, WHO, st.booleans())
    results = st.tuples(st.just("result"), index, WHO, SIZES)
    others = st.one_of(
        st.tuples(st.just("look"), st.sampled_from(("same", "other", "none"))),
        st.tuples(st.sampled_from(("hide", "restore")), st.integers(0, 40)),
        st.tuples(st.sampled_from(("compact", "expand", "wait", "reopen", "lose"))),
    )
    return st.one_of(sends, sends, lands, lands, results, words(), others)


def rounds() -> st.SearchStrategy[list[Step]]:
    """A round as it should be, with something in the middle of it."""
    return st.tuples(events(), events(), st.booleans()).map(
        lambda made: [
            ("send", "call", 1),
            made[0],
            ("land", 0, "self", made[2]),
            made[1],
            ("result", 0, "self", 30),
        ]
    )


def flights() -> st.SearchStrategy[list[Step]]:
    """What happens, after the user has asked for something."""
    parts = st.one_of(rounds(), rounds(), st.lists(events(), min_size=1, max_size=4))
    made = st.lists(parts, min_size=1, max_size=8)
    return made.map(
        lambda found: [("say", "user", "self", 1), *(s for part in found for s in part)]
    )


@pytest.mark.parametrize("generation", GENERATIONS)
@given(steps=flights(), window=st.sampled_from((700, 1500, 100_000)))
def test_no_interleaving_leads_to_a_request_that_is_refused(
    generation: str, steps: list[Step], window: int
) -> None:
    model, mode = GENERATIONS[generation]
    flight = Flight(model, mode, window).run(steps)
    event("requests", payload=flight.sent)


def test_thinking_behind_a_file_that_came_back_goes_with_it() -> None:
    """It was thought in front of what the next request does not have, or not there."""
    store = MemoryStore()
    about = ArtifactDescription(timeline=TimelineId("talk"))
    artifact = store.artifacts().put(b"the whole report", about)
    flight = Flight(*GENERATIONS["bound"], 100_000, store=store)
    flight.timeline.user(f"look at {artifact}")
    for number in range(3):
        rendered = flight.timeline.render(tools=TOOLS)
        message = flight.message(flight.taken(rendered), "call", 1)
        message["content"][1]["text"] = f"I look at {artifact}"
        flight.timeline.record(message)
        flight.timeline.tool_result(message["content"][-1]["id"], f"result {number}")
    assert flight.timeline.render(tools=TOOLS).rehydrated == (artifact,)


def test_what_came_meanwhile_is_shown_after_the_answer() -> None:
    flight = Flight(*GENERATIONS["bound"], 100_000)
    timeline = flight.timeline
    timeline.user("go")
    rendered = timeline.render(tools=TOOLS)
    timeline.steer("the other file")
    timeline.record(flight.message(flight.taken(rendered), "text", 0))
    sent = timeline.render(tools=TOOLS).messages
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"][0]["type"] == "thinking"
    assert sent[2]["content"][-1]["text"] == "the other file"


def test_a_result_that_the_request_had_as_interrupted_comes_late() -> None:
    """Also when another timeline has committed it before the fact that the request was sent."""
    flight = Flight(*GENERATIONS["bound"], 100_000)
    timeline = flight.timeline
    timeline.user("go")
    flight.run_round("call")
    rendered = timeline.render(tools=TOOLS)
    flight.other.tool_result(timeline.open_calls[0], "it came")
    timeline.record(flight.message(flight.taken(rendered), "text", 0))
    flight.taken(timeline.render(tools=TOOLS))
    said = str(timeline.render(tools=TOOLS).messages)
    assert "interrupted, no result was recorded" in said
    assert said.index("answer 2") < said.index("it came")


def test_of_two_requests_the_answer_is_that_of_the_one_that_is_named() -> None:
    flight = Flight(*GENERATIONS["bound"], 100_000)
    timeline = flight.timeline
    timeline.user("go")
    asked = timeline.render(tools=TOOLS)
    timeline.steer("the other file")
    timeline.render(tools=TOOLS)  # somebody looks
    timeline.record(flight.message(flight.taken(asked), "text", 0), rendered=asked)
    sent = flight.taken(timeline.render(tools=TOOLS))["messages"]
    assert sent[1]["content"][0]["type"] == "thinking"
    assert sent[2]["content"][-1]["text"] == "the other file"


def test_after_a_guess_nobody_knows_which_request_still_waits() -> None:
    """Two wait, one answer comes without saying to which, one says it: what is left may be either."""
    flight = Flight(*GENERATIONS["bound"], 100_000)
    timeline = flight.timeline
    timeline.user("go")
    first = timeline.render(tools=TOOLS)
    early = [flight.message(flight.taken(first), "call", 1) for _ in range(2)]
    timeline.user("and this")
    late = flight.message(flight.taken(timeline.render(tools=TOOLS)), "call", 1)
    timeline.record(early[0])
    timeline.record(early[1], rendered=first)
    for call in timeline.open_calls:
        timeline.tool_result(call, "done")
    flight.taken(timeline.render(tools=TOOLS))
    timeline.record(late)  # not the answer to what was rendered last
    flight.taken(timeline.render(tools=TOOLS))


def test_what_changes_nothing_leaves_thinking_alone() -> None:
    """Hidden again behind the same text, or restored without having been hidden."""
    flight = Flight(*GENERATIONS["bound"], 100_000)
    timeline = flight.timeline
    timeline.user("go")
    timeline.note("a secret")
    note, prompt = "ar:t1.react.note", "ar:t1.user.prompt"
    timeline.hide(note)
    flight.run_round("call")
    shown = timeline.render(tools=TOOLS).messages
    assert shown[1]["content"][0]["type"] == "thinking"
    timeline.hide(note)
    timeline.restore(prompt)
    assert timeline.render(tools=TOOLS).messages == shown


def test_a_request_of_another_timeline_is_refused() -> None:
    flight = Flight(*GENERATIONS["bound"], 100_000)
    flight.timeline.user("go")
    rendered = flight.timeline.render(tools=TOOLS)
    empty = open_timeline("another")
    with pytest.raises(MisuseError, match="showed version"):
        empty.record({"id": "m", "content": [{"type": "text", "text": "x"}]}, rendered=rendered)
    with pytest.raises(MisuseError, match="rendered must be what render"):
        empty.record({"id": "m", "content": []}, rendered={})  # type: ignore[arg-type]


def test_what_older_versions_have_logged_stays_where_it_was_shown() -> None:
    """They did not say what they had sent, and later thinking may be bound to that order."""
    timeline = open_timeline()
    timeline.user("go")
    timeline.render()
    timeline.steer("meanwhile")
    timeline.record({"id": "m", "content": [{"type": "text", "text": "answer"}]})
    log = [found for _, found in timeline.events()]
    older = [
        msgspec.structs.replace(found, sent="") if isinstance(found, RequestRendered) else found
        for found in log
    ]
    for events, last in ((log, "meanwhile"), (older, "[continue]")):
        store = MemoryStore()
        store.append(timeline.id, events, expected_version=0)
        shown = open_timeline(store=store).snapshot().render().messages
        assert shown[-1]["content"][-1]["text"] == last
