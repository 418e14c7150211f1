"""Replaces Python's errors for wrong arguments by one typed error."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

from blocks._errors import ArgumentError, MisuseError, did_you_mean

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
_Function: TypeAlias = Callable[..., Any]


def checked_calls(cls: type[_T]) -> type[_T]:
    """A decorator for a class: its constructor and public methods raise `ArgumentError` for arguments that they do not
    accept.

    A TypeError or ValueError of the constructor's own validators becomes one, too.  A method that wraps another
    function (it has `__wrapped__`) checks its arguments itself.
    """
    members: dict[str, Any] = dict(vars(cls))
    for name, member in members.items():
        call = f"{cls.__name__}.{name}()"
        if name == "__init__":
            setattr(cls, name, _constructor(member, f"{cls.__name__}()"))
        elif name.startswith("_"):
            continue
        elif isinstance(member, classmethod):
            function: _Function = cast("Any", member).__func__
            setattr(cls, name, classmethod(_checked(function, call)))
        elif inspect.isfunction(member) and not hasattr(member, "__wrapped__"):
            setattr(cls, name, _checked(member, call))
    return cls


def checked_call(method: _F) -> _F:
    """A decorator for a method, which then raises `ArgumentError` for arguments that it does not accept."""
    return cast("_F", _checked(method, f"{method.__qualname__}()"))


def _checked(function: _Function, call: str) -> _Function:
    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as wrong:
            if not _is_of_the_call(wrong):
                raise
            raise misfit(function, call, keywords, wrong) from None

    @wraps(function)
    async def acked(*args: Any, **keywords: Any) -> Any:
        return await checked(*args, **keywords)

    return acked if inspect.iscoroutinefunction(function) else checked


def _constructor(function: _Function, call: str) -> _Function:
    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> None:
        try:
            function(*args, **keywords)
        except (TypeError, ValueError) as wrong:
            if isinstance(wrong, MisuseError):
                raise
            if _is_of_the_call(wrong):
                raise misfit(function, call, keywords, wrong) from None
            raise ArgumentError(f"{call}: {wrong.args[0] if wrong.args else wrong}") from wrong

    return checked


def _is_of_the_call(wrong: BaseException) -> bool:
    """Whether Python refused the arguments: then the traceback has no frame of the function."""
    return wrong.__traceback__ is not None and wrong.__traceback__.tb_next is None


def misfit(
    function: _Function, call: str, keywords: Mapping[str, Any], wrong: BaseException
) -> ArgumentError:
    """The error for arguments that `function` does not accept; `call` is its name for the user, `wrong` the error that
    Python raised."""
    parameters = [
        name for name in inspect.signature(function).parameters if name not in {"self", "cls"}
    ]
    for name in keywords:
        if name not in parameters:
            names = ", ".join(parameters) or "nothing"
            advice = did_you_mean(name, parameters) or f"; it takes {names}"
            return ArgumentError(f"{call} takes no {name!r}{advice}")
    return ArgumentError(f"{call}: {str(wrong).partition('() ')[2] or wrong}")
