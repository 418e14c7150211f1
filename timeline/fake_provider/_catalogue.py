"""Models as the models endpoint describes them."""

from render import Json, Model


def model_info(model: Model) -> Json:
    """One model."""
    words = model.name.removeprefix("claude-").split("-")
    lines = [word for word in words if not word.isdigit()]
    return {
        "type": "model",
        "id": model.name,
        "display_name": " ".join(word.capitalize() for word in model.name.split("-")),
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "line": lines[0] if lines else None,
        "deprecated_at": None,
        "retires_at": None,
        "capabilities": None,
        "max_input_tokens": model.tokens_window,
        "max_tokens": model.output_tokens_max,
    }


def model_page(models: list[Model]) -> Json:
    """All models, on one page."""
    data = [model_info(model) for model in models]
    ends = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "has_more": False, "first_id": ends[0], "last_id": ends[1]}
