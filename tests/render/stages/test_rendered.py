"""The request is checked when somebody asks for it, and only then."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from blocks import FoldlineError, InvalidRequestError
from render import Model
from render.policy._context import Violation
from tests import _builders as make
from tests.render.providers.plain import plain_text

EMPTY_LINE = ({"type": "text", "text": "rule:"},)
"""A system prompt that plain text refuses."""


def test_a_request_is_checked_once_when_its_violations_are_read() -> None:
    plain, view, checks = plain_text(), make.view_of(make.prompt("Go.")), list[Model | None]()

    def counted(request: Mapping[str, Any], model: Model | None) -> tuple[Violation, ...]:
        checks.append(model)
        return plain.violations(request, model)

    provider = attrs.evolve(plain, violations=counted)
    rendered = make.shown(view, make.context(provider=provider, validate=False, system=EMPTY_LINE))
    assert rendered.request()
    assert rendered == attrs.evolve(rendered)
    assert not checks
    (violation,) = rendered.violations
    assert violation.rule == "empty"
    assert rendered.violations == (violation,)
    assert checks == [make.LOOSE]


def test_a_context_may_ask_for_the_check_and_an_invalid_request_is_then_an_error() -> None:
    view = make.view_of(make.prompt("Go."))
    context = make.context(provider=plain_text("plain"), validate=True)
    assert make.shown(view, context).violations == ()
    with pytest.raises(
        InvalidRequestError, match=r"plain would refuse.*empty: an empty line"
    ) as error:
        make.shown(
            view, make.context(provider=plain_text("plain"), validate=True, system=EMPTY_LINE)
        )
    assert [violation.rule for violation in error.value.violations] == ["empty"]
    assert isinstance(error.value, FoldlineError)
