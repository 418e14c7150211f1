"""The OpenAI Agents SDK: a session whose history is a timeline.

Before each model call the run's items are synced, and the rendered request is sent instead. A hook records the
model's answer with its usage. The SDK gives the session the same items once more at the end of each turn, and only
these if a run uses neither the filter nor the hooks; what the timeline lacks of them is appended.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from blocks import (
    AlreadyRecordedError,
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    CallId,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    Recorded,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
    withheld_after,
)
from blocks.formats import client_call, client_result, obj, spelled
from render import Json, Rendered, stand_in
from timeline import AsyncTimeline
from timeline.integrations._conversation import lacking

try:
    from agents import (
        Agent,
        Handoff,
        ModelResponse,
        ModelSettings,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        SessionSettings,
        TResponseInputItem,
        handoff,
    )
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.models.openai_responses import Converter
    from agents.run import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise lacking("openai-agents", error) from error

_FORMAT: Final = "openai.responses"
_HELD: Final = "foldline:"
"""The beginning of the id of the item that stands for the timeline's content; the version follows."""


@attrs.define(eq=False)
class TimelineSession:
    """A session for `Runner.run(..., session=session, hooks=session.hooks, run_config=session.run_config)`.

    All runs continue this timeline. If an agent is to see another history than the session's, for example after a
    handoff with a filter, its requests are rendered from a fork, until the run ends.

    Args:
        timeline: Its model must be one of `openai.responses`, because the SDK takes no other items; it converts them
            for a model of another API.

    Raises:
        MisuseError: the timeline's model is of another provider.
    """

    timeline: AsyncTimeline
    """The timeline."""
    session_settings: SessionSettings | None = None
    """Part of the SDK's protocol; not used, because the timeline's policy decides what is sent."""
    _run: "_AgentRun" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        provider = self.timeline.settings.provider.name
        if provider != _FORMAT:
            raise MisuseError(
                f"TimelineSession: the timeline's model is one of {provider!r}, and the SDK takes items of "
                f"{_FORMAT!r} for models of any API: open it with "
                f"model=attrs.evolve(model_named({self.timeline.settings.model.name!r}), provider={_FORMAT!r})"
            )
        self._run = _AgentRun(shown=self.timeline, after=self.timeline.version)

    @property
    def session_id(self) -> str:
        """The timeline's name."""
        return self.timeline.id

    @property
    def hooks(self) -> "TimelineHooks":
        """Hooks for the runs of this session; to add hooks of your own, derive a class from `TimelineHooks`."""
        return TimelineHooks(self)

    @property
    def run_config(self) -> RunConfig:
        """The configuration for the runs of this session; add further settings with `dataclasses.replace`."""
        settings = self.timeline.settings
        marks = settings.provider.limits(settings.model).marks_max > 0
        return RunConfig(
            call_model_input_filter=self._rendered_instead,
            session_settings=SessionSettings(limit=0),
            model_settings=ModelSettings(
                store=False,
                prompt_cache_options={"mode": "explicit"} if marks else None,
                extra_args={"prompt_cache_key": settings.cache_key},
            ),
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items of the conversation, by default all: whatever was folded is there, what is hidden
        on request is replaced.

        A run with `run_config` asks for none, because its requests are rendered; it gets one item that stands for the
        timeline's content and says where the run began.
        """
        if limit == 0:
            self._run = _AgentRun(shown=self.timeline, after=self.timeline.version, is_alone=True)
            held: TResponseInputItem = {"type": "item_reference", "id": f"{_HELD}{self._run.after}"}
            return [held] if self._run.after else []
        items = list(_items_of(await self.timeline.events()))
        return cast("list[TResponseInputItem]", items if limit is None else items[-limit:])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append the items that the timeline lacks."""
        run = self._run
        run.items += items
        await self.timeline.sync(run.items, format=_FORMAT, after=run.after, on_divergence="append")

    async def pop_item(self) -> TResponseInputItem | None:
        """Not supported by a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError(
            "a timeline cannot remove items; continue from an earlier version with fork()"
        )

    async def clear_session(self) -> None:
        """Not supported by a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError("a timeline cannot be cleared; open a new one")

    async def record(self, response: ModelResponse) -> None:
        """Record the model's answer to the newest request."""
        run = self._run
        answer = {"id": response.response_id, "output": response.output, "usage": response.usage}
        try:
            await run.shown.record(answer, run.rendered, format=_FORMAT)
        except AlreadyRecordedError:  # test models give the same id to each answer
            await run.shown.record({**answer, "id": None}, run.rendered, format=_FORMAT)

    async def hand_over(self, from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        """Answer the call by which an agent hands over to another."""
        messages = {
            one.tool_name: one.get_transfer_message(to_agent)
            for one in _handoffs(from_agent)
            if one.agent_name == to_agent.name
        }
        timeline = self.timeline
        for entry in timeline.view.entries if timeline.open_calls else ():
            call = entry.block
            if (
                isinstance(call, ToolCall)
                and call.call_id in timeline.open_calls
                and call.name in messages
            ):
                await timeline.tool_result(call.call_id, messages[call.name])

    async def _rendered_instead(self, call: CallModelData[Any]) -> ModelInputData:
        data, run = call.model_data, self._run
        items, after = data.input, run.after if run.is_alone else 0
        if held := _held(items):
            items, after = items[1:], held
        if held and after != run.after:  # the run had to wait, and goes on in another object
            run = _AgentRun(shown=self.timeline, after=after, is_alone=True, items=list(items))
            self._run = run
        synced = await run.shown.sync(items, format=_FORMAT, after=after, on_divergence="fork")
        run.shown = synced.timeline
        prompts = [text for text in (data.instructions, synced.system) if text]
        tools = await _tools(call.agent, call.context)
        run.rendered = await run.shown.render(system="\n\n".join(prompts), tools=tools)
        sent = [_convertible(item) for item in run.rendered.openai_responses()["input"]]
        return ModelInputData(input=cast("list[TResponseInputItem]", sent), instructions=None)


@attrs.define(eq=False, kw_only=True)
class _AgentRun:
    """A run of agents."""

    shown: AsyncTimeline
    """What its requests are rendered from: the session's timeline, or a fork of it with the history that a filter has
    edited."""
    after: int
    """Version of the session's timeline when it began."""
    is_alone: bool = False
    """Whether its items are all that the SDK knows, without what came before it."""
    items: list[TResponseInputItem] = attrs.field(factory=list["TResponseInputItem"])
    """What the SDK has given the session since."""
    rendered: Rendered | None = None
    """Its newest request."""


class TimelineHooks(RunHooks[Any]):
    """Hooks that record the model's answers."""

    def __init__(self, session: TimelineSession) -> None:
        self.session = session

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 -- the SDK's
        agent: Agent[Any],  # noqa: ARG002
        response: ModelResponse,
    ) -> None:
        """Record the model's answer."""
        await self.session.record(response)

    async def on_handoff(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 -- the SDK's
        from_agent: Agent[Any],
        to_agent: Agent[Any],
    ) -> None:
        """Record the result of the call, which the SDK does not keep if a filter removes it."""
        await self.session.hand_over(from_agent, to_agent)


def _held(items: Sequence[TResponseInputItem]) -> int:
    """Version of the timeline for which the first item stands; 0: it is an ordinary item."""
    first: Mapping[str, Any] = items[0] if items else {}
    name = str(first.get("id", ""))
    is_held = first.get("type") == "item_reference" and name.startswith(_HELD)
    return int(name.removeprefix(_HELD)) if is_held else 0


async def _tools(agent: Agent[Any], context: Any) -> list[Json]:
    """The definitions that the SDK will send; here they are only counted."""
    tools = await agent.get_all_tools(RunContextWrapper(context))
    return [dict(tool) for tool in Converter.convert_tools(tools, _handoffs(agent)).tools]


def _handoffs(agent: Agent[Any]) -> list[Handoff[Any, Any]]:
    return [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]


def _convertible(item: Json) -> Json:
    """An item of a request as the SDK converts it for every API: for Chat Completions, it joins only what has an id with
    the calls that follow. No API is sent this id."""
    if item.get("role") != "assistant":
        return item
    part = {"type": "output_text", "text": item["content"]}
    return {**item, "id": FAKE_RESPONSES_ID, "content": [part]}


# The log as the items that a session of the SDK holds: each as it was given, whatever was folded since.


_TAG: Final = "provider.openai."


def _items_of(log: Sequence[Recorded]) -> Iterator[Json]:
    """The items of a conversation, as they were given."""
    withheld = withheld_after(log)
    calls: dict[CallId, ToolCall] = {}
    for block in (event.block for _, event in log if isinstance(event, BlockAppended)):
        hidden = withheld.get(block.id)
        shown = stand_in(block, hidden.replacement) if hidden else block
        if isinstance(shown, ToolCall):
            calls[shown.call_id] = shown
        item = _returned(shown, calls) if isinstance(shown, ToolResult) else _item(shown)
        own = getattr(block, "response", "") != block.source and block.source
        if item:
            yield {**item, **({"id": own} if own else {})}


def _item(block: Block) -> Json | None:
    """The item of a block other than a result; None: it is none of the SDK's."""
    match block:
        case UserPrompt() | UserSteer() | UserFollowup():
            parts = (TextPart(text=block.text), *block.parts) if block.text else block.parts
            listed = list(map(_content, parts)) if block.parts else block.text
            return {"role": "user", "content": listed}
        case UserAttachment():
            return {"role": "user", "content": [_content(block.part)]}
        case SystemMessage():
            return {"role": block.role or "developer", "content": block.text}
        case AssistantCompletion():
            part: Json = {"type": "output_text", "text": block.text, "annotations": []}
            head = {"id": FAKE_RESPONSES_ID, "type": "message", "role": "assistant"}
            return {**head, **block.provider, "status": "completed", "content": [part]}
        case AssistantThinking(provider={"type": "reasoning"} as own):
            return own
        case OpaqueBlock() if block.tag.startswith(_TAG):
            return obj(block.fields.get("value")) or None
        case ToolCall():
            return client_call(block, block.call_id) or _call(block)
        case _:
            return None


def _call(call: ToolCall) -> Json:
    names = {"call_id": call.call_id, "name": call.name}
    if _is_custom(call):
        return {"type": "custom_tool_call", **names, "input": call.input.get("input")}
    arguments = call.provider.get("arguments", spelled(call.input))
    return {"type": "function_call", **names, "arguments": arguments}


def _returned(result: ToolResult, calls: Mapping[CallId, ToolCall]) -> Json:
    call, call_id = calls.get(result.call_id), result.call_id
    item = call and client_result(call, call_id, result.parts, is_error=result.is_error)
    if item:
        return item
    is_text = all(isinstance(part, TextPart) for part in result.parts)
    output = text_of(result) if is_text else list(map(_content, result.parts))
    kind = "custom_tool_call_output" if call and _is_custom(call) else "function_call_output"
    return {"type": kind, "call_id": call_id, "output": output}


def _is_custom(call: ToolCall) -> bool:
    return bool(call.provider.get("type") == "custom")


def _content(part: Part) -> Json:
    match part:
        case TextPart():
            return {"type": "input_text", "text": part.text}
        case ImagePart():
            url = part.url or f"data:{part.media_type};base64,{part.data}"
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case DocumentPart() if part.url:
            return {"type": "input_file", "file_url": part.url}
        case DocumentPart(media_type="text/plain"):
            return {"type": "input_text", "text": part.data}
        case DocumentPart():
            data = f"data:{part.media_type};base64,{part.data}"
            return {"type": "input_file", "filename": part.name or "file", "file_data": data}
        case ProviderPart():
            return part.value
