"""What the validators of both APIs check of a whole request in the same way: names of tools, the cache, sizes."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from render.policy._model import Model
from render.policy._provider import Violation
from render.providers._facts import fields, violation
from render.providers.openai._kinds import PICTURES_MAX
from render.providers.openai._media import MediaFacts

REQUEST_BYTES_MAX: Final = 50 * 1024 * 1024
CACHE_KEY_LENGTH_MAX: Final = 64


def check_names(names: Sequence[str], rules: type[Enum]) -> Iterator[Violation]:
    """Check that no two tools have one name."""
    seen = {""}
    for index, name in enumerate(names):
        if name and name in seen:
            yield violation(rules["TOOL_NAME_DUPLICATE"], f"tools.{index}", name)
        seen.add(name)


def check_cache(
    request: Mapping[str, Any], marked: str, model: Model | None, rules: type[Enum]
) -> Iterator[Violation]:
    """Check what a request says of the cache; `marked`: where the first mark is, or empty."""
    options: object = request.get("prompt_cache_options")
    knows = model is None or model.cache_kind == "marks"
    if marked and not knows:
        yield violation(rules["MARK_MODEL"], marked)
    if options is not None:
        if fields(options).get("mode", "implicit") not in ("implicit", "explicit"):
            yield violation(rules["CACHE_OPTIONS"], "prompt_cache_options")
        if not knows:
            yield violation(rules["MARK_MODEL"], "prompt_cache_options")
    key: object = request.get("prompt_cache_key")
    if key is not None and not isinstance(key, str):
        yield violation(rules["SHAPE"], "prompt_cache_key", "a string")
    elif key and len(key) > CACHE_KEY_LENGTH_MAX:
        yield violation(rules["CACHE_KEY"], "prompt_cache_key")


def check_sizes(facts: Sequence[MediaFacts], place: str, rules: type[Enum]) -> Iterator[Violation]:
    """Check how many images there are, and how many bytes."""
    images, size = (sum(map(attrgetter(name), facts)) for name in ("images", "size"))
    if images > PICTURES_MAX:
        yield violation(rules["IMAGES_MAX"], place, images, PICTURES_MAX)
    if size > REQUEST_BYTES_MAX:
        yield violation(rules["REQUEST_BYTES"], "request", size)
