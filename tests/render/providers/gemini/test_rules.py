"""Every rule of the Gemini API: a request that breaks it and no other, and its repaired twin."""

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from render import Model
from render.providers.gemini._rules import Rule, check_request
from tests._table import for_each
from tests.render.providers.gemini._play import MODEL, OLD, SEALED

PNG = "iVBORw0KGgo="
SMALL = attrs.evolve(MODEL, output_tokens_max=100)
SEAL = {"thoughtSignature": SEALED}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts or [{"text": "hm"}])}


def said(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts or [{"text": "so"}])}


def call(call_id: str = "c1", seal: Any = SEAL, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": "bash", "args": {}, **fields}, **seal}


def result(call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    known = {"id": call_id, "name": "bash", "response": {"output": "done"}}
    return {"functionResponse": {**known, **fields}}


def image(data: Any = PNG, kind: Any = "image/png") -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": data}}


def link(url: Any, **fields: Any) -> dict[str, Any]:
    return {"fileData": {"fileUri": url, **fields}}


def of(*contents: Any, **config: Any) -> dict[str, Any]:
    return {"contents": list(contents), "config": config}


def asked(*calls: Any) -> dict[str, Any]:
    answers = [result(c["functionCall"].get("id"), name=c["functionCall"]["name"]) for c in calls]
    return of(user(), said(*calls), user(*answers))


def tools(*functions: Any) -> dict[str, Any]:
    return of(user(), tools=[{"functionDeclarations": list(functions)}])


FINE = of(user())
TURN = asked(call())["contents"]

CASES: list[tuple[str, str, Any, Any, Model | None]] = [
    ("shape", "request", "hm", FINE, None),
    ("shape", "contents", {"contents": 5}, FINE, None),
    ("shape", "config", {"contents": [user()], "config": 5}, FINE, None),
    ("shape", "tools", of(user(), tools="x"), of(user(), tools=[]), None),
    ("shape", "tools.0", of(user(), tools=["x"]), of(user(), tools=[{"googleSearch": {}}]), None),
    ("shape", "tools.0", of(user(), tools=[{"functionDeclarations": 5}]), tools(), None),
    ("shape", "systemInstruction", of(user(), systemInstruction="x"), of(user(), systemInstruction={"parts": []}), None),
    ("shape", "systemInstruction.parts.0", of(user(), systemInstruction={"parts": [image()]}), of(user(), systemInstruction={"parts": [{"text": "x"}]}), None),
    ("shape", "contents.0", of("hm"), FINE, None),
    ("shape", "contents.0", of({"role": "user", "parts": "hm"}), FINE, None),
    ("shape", "contents.0.parts.0", of(user("hm")), FINE, None),
    ("shape", "contents.0.parts.0", of(user({"text": 5})), FINE, None),
    ("shape", "contents.1.parts.0", of(user(), said(call(5)), user(result(""))), asked(call()), None),  # type: ignore[arg-type]  # a number for a name
    ("shape", "maxOutputTokens", of(user(), maxOutputTokens="9"), of(user(), maxOutputTokens=9), None),
    ("no_contents", "contents", of(), FINE, None),
    ("role", "contents.0", of({"role": "assistant", "parts": [{"text": "a"}]}), of({"parts": [{"text": "a"}]}), None),
    ("parts_empty", "contents.0", of({"role": "user", "parts": []}), FINE, None),
    ("part_data", "contents.0.parts.0", of(user({})), FINE, None),
    ("extra_field", "contents.0", of({**user(), "name": "Ann"}), FINE, None),
    ("extra_field", "contents.0.parts.0", of(user({"text": "a", "annotations": []})), of(user({"text": "a", "thought": False})), None),
    ("extra_field", "contents.1.parts.0", asked({**call(), "functionCall": {**call()["functionCall"], "strict": True}}), asked(call()), None),
    ("part_data", "contents.0.parts.0", of(user({"text": "a", **image()})), of(user(image())), None),
    ("text_empty", "contents.0.parts.0", of(user({"text": ""})), of(user(), said({"text": "", **SEAL}), user()), None),
    ("part_role", "contents.0.parts.0", of(user(call())), asked(call()), None),
    ("part_role", "contents.1.parts.0", of(user(), said(result()), user()), asked(call()), None),
    ("first_role", "contents.0", of(said(), user()), of(user(), said(), user()), None),
    ("last_role", "contents.1", of(user(), said()), of(user(), said(), user()), None),
    ("call_place", "contents.2", of(user(), said(), said(call()), user(result())), of(user(), said({"text": "so"}, call()), user(result())), None),
    ("call_unanswered", "contents.1", of(user(), said(call()), user()), asked(call()), None),
    ("call_unanswered", "contents.1", of(user(), said(call(), call("c2", {})), user(result())), asked(call(), call("c2", {})), None),
    ("response_unexpected", "contents.0", of(user(result())), FINE, None),
    ("response_unexpected", "contents.3", of(*TURN, user(result())), of(*TURN, user()), None),
    ("response_id", "contents.2", of(user(), said(call()), user(result("x"))), asked(call()), None),
    ("response_id", "contents.2", of(user(), said(call(), call("c2", {})), user(result(), result())), asked(call(), call("c2", {})), None),
    ("response_name", "contents.2", of(user(), said(call()), user(result(name="other"))), asked(call()), None),
    ("call_name", "contents.1.parts.0", of(user(), said(call("", name="1st")), user(result(""))), asked(call(name="_1st")), None),
    ("call_args", "contents.1.parts.0", asked(call(args="{}")), asked(call()), None),
    ("response_form", "contents.2.parts.0", of(user(), said(call()), user(result(response="x"))), asked(call()), None),
    ("signature_missing", "contents.1", asked(call(seal={})), asked(call()), MODEL),
    ("signature_missing", "contents.1", asked(call(seal={})), asked(call(seal={})) | of(*asked(call(seal={}))["contents"], said(), user()), None),
    ("signature_missing", "contents.3", of(*TURN, said(call("c2", {}), call("c3")), user(result("c2"), result("c3"))), of(*TURN, said(call("c2"), call("c3", {})), user(result("c2"), result("c3"))), None),
    ("signature_form", "contents.1.parts.0", asked(call(seal={"thoughtSignature": "?"})), asked(call(seal={"thoughtSignature": "skip_thought_signature_validator"})), None),
    ("tool_name", "tools.0.functionDeclarations.0", tools({"name": "a b"}), tools({"name": "a-b"}), None),
    ("tool_name_duplicate", "tools.0", tools({"name": "a"}, {"name": "a"}), tools({"name": "a"}, {"name": "b"}), None),
    ("tool_schema", "tools.0.functionDeclarations.0", tools({"name": "a", "parametersJsonSchema": {"type": "string"}}), tools({"name": "a", "parametersJsonSchema": {"type": "object"}}), None),
    ("tool_schema", "tools.0.functionDeclarations.0", tools({"name": "a", "parameters": {"type": "OBJECT"}, "parametersJsonSchema": {"type": "object"}}), tools({"name": "a", "parameters": {"type": "OBJECT"}}), None),
    ("images_max", "contents", of(user(*[image()] * 901)), of(user(*[image()] * 900)), None),
    ("media_type", "contents.0.parts.0", of(user(image(kind="image/gif"))), of(user(image(kind="audio/mp3"))), None),
    ("media_type", "contents.0.parts.0", of(user(link("https://a.b/c", mimeType=5))), of(user(link("https://a.b/c"))), None),
    ("base64", "contents.0.parts.0", of(user(image("?"))), of(user(image())), None),
    ("url", "contents.0.parts.0", of(user(link("a.png"))), of(user(link("gs://bucket/a.png"))), None),
    ("request_bytes", "request", of(user({"text": "x" * (100 * 1024 * 1024 + 1)})), FINE, None),
    ("max_tokens", "maxOutputTokens", of(user(), maxOutputTokens=101), of(user(), maxOutputTokens=100), SMALL),
    ("max_tokens", "maxOutputTokens", of(user(), maxOutputTokens=0), of(user(), maxOutputTokens=1), None),
]  # fmt: skip


@for_each(("rule", "place", "broken", "repaired", "model"), CASES)
def test_a_rule_is_broken_alone_and_its_repair_breaks_none(
    rule: str, place: str, broken: Any, repaired: Any, model: Model | None
) -> None:
    found = check_request(broken, model)
    assert [(each.rule, each.place) for each in found] == [(rule, place)]
    assert found[0].message
    assert check_request(repaired, model) == ()


def test_every_rule_has_a_case() -> None:
    assert {rule.name.lower() for rule in Rule} == {case[0] for case in CASES}


def test_models_before_the_third_take_calls_without_a_signature() -> None:
    assert check_request(asked(call(seal={})), OLD) == ()


def test_calls_without_ids_are_answered_by_their_place() -> None:
    bare = {"functionCall": {"name": "bash"}, **SEAL}
    answer = {"functionResponse": {"name": "bash", "response": {}}}
    assert check_request(of(user(), said(bare), user(answer))) == ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("contents", "config", "parts", "role", "text", "functionCall", "tools"),
                    *("functionResponse", "inlineData", "fileData", "functionDeclarations"),
                    "systemInstruction",
                ]
            ),
            inner | st.sampled_from(["user", "model"]),
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(_JSON)
def test_nothing_makes_it_raise(request: Any) -> None:
    check_request(request, None)
    check_request({"contents": [request]}, MODEL)
    check_request({"contents": [{"parts": [request]}], "config": request}, MODEL)
