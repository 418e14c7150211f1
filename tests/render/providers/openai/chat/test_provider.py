"""Chat Completions behind the seam: the request as the client, and as any server, takes it."""

from render import PROVIDERS, Model
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.openai._play import CHAT, LOCAL

PROVIDER = PROVIDERS["openai.chat"]
SYSTEM = [{"type": "text", "text": "You help."}, {"type": "text", "text": "Be kind."}]
MIDWAY = {"role": "user", "content": "[the beginning of this conversation is missing]"}


def test_the_system_prompt_is_a_text_unless_it_carries_a_mark() -> None:
    [plain], _ = PROVIDER.prefix(SYSTEM, [], None)
    assert plain == {"role": "system", "content": "You help.\n\nBe kind."}
    [marked], _ = PROVIDER.prefix(SYSTEM, [], "5m")
    marks = ["prompt_cache_breakpoint" in part for part in marked["content"]]
    assert marks == [False, True]
    assert PROVIDER.prefix([], [], "5m") == ([], [])


def test_the_request_is_exactly_what_the_client_takes() -> None:
    timeline = make.open_timeline(model=LOCAL)
    timeline.user("Go.")
    rendered = timeline.render(system="You help.", tools=[{"name": "bash"}])
    request = rendered.openai_chat(max_completion_tokens=99)
    assert set(request) == {"model", "messages", "tools", "max_completion_tokens"}
    assert request["messages"] == [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Go."},
    ]
    assert set(rendered.openai_chat()) == {"model", "messages", "tools"}


def test_what_only_openai_knows_is_sent_only_to_models_that_take_marks() -> None:
    """Other servers refuse fields that they do not know."""
    own = {"prompt_cache_key", "prompt_cache_options"}
    for model, wanted in ((CHAT, own), (LOCAL, set[str]())):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        assert set(timeline.render().openai_chat()) & own == wanted


def test_the_user_speaks_first_and_never_twice_in_a_row() -> None:
    encoder = make.context(model=LOCAL, provider=PROVIDER).encoder
    view = make.view_of(make.said("hm", response="r"))
    pieces = [encoder.shown(group) for group in view.groups]
    assert PROVIDER.messages(pieces, [], ["a", "b"]) == [
        MIDWAY,
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": "[continue]\n\na\n\nb"},
    ]
    assert PROVIDER.messages([], [], []) == [MIDWAY]
    assert PROVIDER.quoting(["a", "b"]) == {"messages": [{"role": "user", "content": "a\n\nb"}]}


@for_each("model", [CHAT, LOCAL], ids=lambda model: model.name)
def test_an_instruction_joins_the_users_last_message(model: Model) -> None:
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    live = timeline.render().request()
    extended = PROVIDER.extended(live, "Summarise.")
    assert len(extended["messages"]) == len(live["messages"])
    assert "Go." in str(extended["messages"][-1])
    assert "Summarise." in str(extended["messages"][-1])
    assert "Summarise." not in str(live)
    assert PROVIDER.violations(extended, model) == ()


def test_there_is_no_thinking_to_be_left_out() -> None:
    request = {"messages": [MIDWAY]}
    assert PROVIDER.without_thinking(request) is request


def test_open_tools_take_any_arguments_under_the_names_that_are_sent() -> None:
    assert [tool["name"] for tool in PROVIDER.open_tools(["b", "a b", "b"])] == ["a_b", "b"]
