"""What a tenant of a store tries in order to see what another one has; every name and text is a way in."""

from collections.abc import Callable, Iterator

from blocks import BlockId, FoldlineError, TimelineId, UserPrompt
from persistence import (
    ArtifactDescription,
    MemoryStore,
    PostgresStore,
    Requester,
    block_at,
)
from persistence.testing._events import holding
from tests.persistence.contract import TURN, T, U, forked, prompt

CANARY = "c4nary"
TEXTS = (
    "' OR '1'='1",
    "acme' --",
    "x') OR tenant = 'acme' OR ('x' = 'x",
    "'; SELECT set_config('foldline.tenant', 'acme', false); --",
    "'; RESET ALL; --",
    "\\' OR 1=1 --",
    "$1",
    "%(tenant)s",
    "%s",
    "?",
    "%",
    "_",
    "acme",
    "acme/talk",
    "foldline.tenant=acme",
)


TRIES: dict[str, Callable[[PostgresStore, str], object]] = {
    "read": lambda s, text: (s.head(_name(text)), s.tip(_name(text)), s.read(_name(text))),
    "window": lambda s, text: (s.load_window(_name(text)), s.kept(_name(text))),
    "bytes": lambda s, text: s.read_bytes(_name(text)),
    "fork": lambda s, text: s.fork(_name(text), TimelineId("f"), forked(_name(text), 1), at=1),
    "remove": lambda s, text: s.remove(_name(text)),
    "trim": lambda s, text: s.trim(_name(text), 1),
    "path": lambda s, text: block_at(s, T, text),
    "path of": lambda s, text: block_at(s, _name(text), f"ar:{TURN}.user.prompt"),
    "search": lambda s, text: [*s.search(text)],
    "search in": lambda s, text: [*s.search(CANARY, _name(text))],
    "skim": lambda s, text: [*s.skim([_name(text)], 9, ["BlockAppended"])],
    "artifact": lambda s, text: s.artifacts().read(text, Requester("me")),
    "artifact, as theirs": lambda s, text: s.artifacts().read(text, Requester("me", tenant="acme")),
    "artifacts": lambda s, text: s.artifacts().list(Requester("me", tenant=text)),
    "list": lambda s, _: (s.list(), s.trimmed(), s.verify()),
    "audit": lambda s, _: s.artifacts().audit(),
    "copy": lambda s, _: _copied(s),
}
"""What a tenant does with a text."""


def _name(text: str) -> TimelineId:
    return TimelineId(text)


def _copied(store: PostgresStore) -> object:
    with MemoryStore() as other:
        store.copy_to(other)
        return [other.read(info.id) for info in other.list()]


def attempts(url: str, artifact: str) -> Iterator[tuple[str, object]]:
    """Each attempt of others than the tenant "acme", and what it gave."""
    with PostgresStore(url, tenant="globex") as store:
        for text in (*TEXTS, T, artifact):
            for what, attempt in TRIES.items():
                yield f"{what} {text}", _answer(attempt, store, text)
    for tenant in TEXTS:
        if tenant != "acme":
            with PostgresStore(url, tenant=tenant) as store:
                for what in ("read", "list", "search"):
                    yield f"{what} as {tenant}", _answer(TRIES[what], store, T)


def _answer(
    attempt: Callable[[PostgresStore, str], object], store: PostgresStore, text: str
) -> object:
    try:
        return attempt(store, text)
    except FoldlineError as error:
        return error, error.__cause__


def leaks(url: str) -> list[str]:
    """The attempts whose answer or error has a word of the tenant "acme", or that changed what it has."""
    with PostgresStore(url, tenant="acme") as one:
        block = UserPrompt(id=BlockId("b"), turn=TURN, text=f"the {CANARY} sings")
        one.append(T, [holding(block)], expected_version=0)
        about = ArtifactDescription(timeline=T, tenant="acme")
        artifact = one.artifacts().put(CANARY.encode(), about)
        with PostgresStore(url, tenant="globex") as other:
            other.append(U, [prompt("own")], expected_version=0)
        found = [
            f"{what}: {answer!r:.300}"
            for what, answer in attempts(url, artifact)
            if CANARY in repr(answer)
        ]
        assert one.artifacts().read(artifact, Requester("me", tenant="acme")) == CANARY.encode()
        assert [version for version, _ in one.read(T)] == [1]
    return found
