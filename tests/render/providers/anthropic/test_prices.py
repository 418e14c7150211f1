"""What the cache costs: the rules of the price list, and the prices that a model has of its own."""

import pytest

from blocks import ArgumentError
from render import Model, provider_of
from render.policy._context import Rates


def rates(prompt_tokens: int = 0, **fields: object) -> Rates:
    model = Model(name="mine", price_input=4.0, price_output=20.0, **fields)  # type: ignore[arg-type]  # prices by name
    return provider_of(model).rates(model, prompt_tokens)


def test_the_cache_is_priced_by_the_input() -> None:
    """Provider docs, prompt caching: writes 1.25 and 2, reads 0.1."""
    found = rates()
    assert (found.input, found.output) == (4.0, 20.0)
    assert found.read == pytest.approx(0.4)
    assert found.writes == {300: 5.0, 3_600: 8.0}


def test_a_price_of_the_models_own_goes_before_the_rule_free_of_charge_too() -> None:
    found = rates(price_read=0.0, price_writes=(6.0, 8.5))
    assert (found.read, found.writes) == (0.0, {300: 6.0, 3_600: 8.5})


def test_a_long_prompt_has_its_own_prices_and_the_same_rules() -> None:
    long = {"long_prompt_tokens": 100, "long_price_input": 8.0, "long_price_output": 30.0}
    assert rates(100, **long) == rates()
    found = rates(101, **long, long_price_writes=(9.5, 9.0), price_read=0.1)
    assert (found.input, found.output) == (8.0, 30.0)
    assert found.read == pytest.approx(0.8)
    assert found.writes == {300: 9.5, 3_600: 9.0}


def test_a_model_whose_cache_has_one_life_of_its_own_keeps_the_rule_for_the_others() -> None:
    assert rates(cache_ttls=(600,), price_writes=(4.0,)).writes == {300: 5.0, 600: 4.0, 3_600: 8.0}


def test_prices_of_writes_go_with_the_lives_of_the_cache() -> None:
    with pytest.raises(ArgumentError, match="price_writes has 1 prices and cache_ttls has 2 times"):
        Model(name="mine", price_writes=(1.0,))


def test_a_cost_is_the_sum_over_what_was_billed() -> None:
    found = rates()
    assert found.cost(10, 100, {300: 4, 3_600: 2}, 7) == pytest.approx(40 + 40 + 36 + 140)
    assert found.cost(0, 0, {}) == 0
