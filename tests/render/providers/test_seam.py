"""The seam between stages and providers: what is kept for one provider is never shown to another."""

import attrs
import pytest

from blocks import Answered, BlockAppended, EventId, MisuseError
from render import PROVIDERS, Context, Rendered, provider_of
from render.stages._visibility import strip_unbound
from tests import _builders as make
from tests.render.providers.plain import plain_text

TOOLS = ({"name": "look", "description": "Look. " * 200, "input_schema": {"type": "object"}},)
SYSTEM = ({"type": "text", "text": "You help."},)


def shown_twice(first: Context, second: Context) -> tuple[Rendered, Rendered]:
    view = make.view_of(make.prompt("Go."), make.call("a"), make.result("a", "done"))
    return make.shown(view, first), make.shown(view, second)


def test_the_same_log_and_tools_are_rendered_for_two_providers_as_if_each_were_alone() -> None:
    """As when a summariser asks a model of another provider in the middle of a conversation."""
    one = make.context(system=SYSTEM, tools=TOOLS)
    other = attrs.evolve(one, provider=plain_text(name="plain"))
    assert other.fixed is one.fixed
    alone = make.context(system=SYSTEM, tools=TOOLS, provider=plain_text(name="plain"))
    for first, second in ((one, other), (other, one)):
        by_provider = {r.provider.name: r for r in shown_twice(first, second)}
        plain, claude = by_provider["plain"], by_provider["anthropic"]
        again, _ = shown_twice(alone, alone)
        assert plain.request() == again.request()
        assert plain.account == again.account
        assert plain.prefix_hash == again.prefix_hash != claude.prefix_hash
        assert claude.account.tools > plain.account.tools


def test_a_request_is_handed_out_for_the_provider_that_it_was_rendered_for() -> None:
    plain = make.context(provider=plain_text(name="plain"))
    rendered, _ = shown_twice(plain, plain)
    with pytest.raises(MisuseError, match="rendered for 'plain'"):
        rendered.anthropic(max_tokens=10)


def test_the_table_has_each_provider_under_its_own_name() -> None:
    assert [provider.name for provider in PROVIDERS.values()] == list(PROVIDERS)


def test_a_model_of_an_unknown_provider_is_refused_by_name() -> None:
    assert provider_of(make.LOOSE) is PROVIDERS["anthropic"]
    with pytest.raises(MisuseError, match=r"no provider 'antropic'; did you mean 'anthropic'"):
        provider_of(attrs.evolve(make.LOOSE, provider="antropic"))


def test_thinking_is_looked_at_as_each_provider_shows_it() -> None:
    """The log begins with an answer to a request that nobody knows.  Plain text does not show that
    thinking, so nothing is wrong with it; that says nothing of the other provider."""
    answered = Answered(shown=1, sent="another request")
    thought = BlockAppended(
        id=EventId("e"), at=0.0, block=make.thought(response="r"), answers=answered
    )
    claude = make.context(model=make.BOUND)
    bound = plain_text(name="plain", thinking=frozenset({"bound"}))
    plain = attrs.evolve(claude, provider=bound)
    view = make.view_of(thought, make.call("a", response="r"))
    assert strip_unbound(view, plain) is view
    assert strip_unbound(view, claude) is not view
