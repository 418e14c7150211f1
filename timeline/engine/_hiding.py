"""Hiding and restoring blocks on request, in a timeline and in its forks; see `_withholding`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from blocks import (
    ArtifactId,
    Block,
    BlockAppended,
    Hidden,
    Naming,
    Recorded,
    ToolResult,
    artifact_id,
    label_of,
    path_at,
    text_of,
)
from render import View
from timeline._flow import Flow
from timeline.engine._engine import Engine
from timeline.engine._sharing import blocks_of
from timeline.engine._withholding import Hides, changed, withheld_as, without_quotes

REPLACEMENT: Final = "[hidden on request]"
"""The default text in place of a hidden block."""


@attrs.frozen
class Target:
    """A block that is to be hidden or restored."""

    version: int
    block: Block
    """The block as it was appended."""


def hide(engine: Engine, keys: Sequence[str], replacement: str) -> Flow[int]:
    """Hide blocks, named by path or id, behind a text, and remove quotations of them.

    Raises:
        UnknownPathError: a key names no block.
    """
    text = replacement or REPLACEMENT

    def hidden(targets: Sequence[Target]) -> View:
        made = [
            Hidden(block=each.block.id, replacement=text, artifact=content_id(each.block))
            for each in targets
        ]
        return changed(engine.view, made, (), engine.clock())

    return (yield from _settled(engine, keys, hidden))


def restore(engine: Engine, keys: Sequence[str]) -> Flow[int]:
    """Show hidden blocks again, and restore the quotations of them in the current summary.

    Raises:
        UnknownPathError: a key names no block.
    """

    def restored(targets: Sequence[Target]) -> View:
        blocks = tuple(each.block.id for each in targets)
        return changed(engine.view, (), blocks, engine.clock())

    return (yield from _settled(engine, keys, restored))


def _settled(
    engine: Engine, keys: Sequence[str], change: Callable[[Sequence[Target]], View]
) -> Flow[int]:
    """Commit the decisions of `change` for the blocks with these keys, and those about quotations of them; decide again
    if another writer was faster.

    Blocks that are newer than the newest compaction are not quoted anywhere, so nothing is read for them.
    """
    engine.check_open()

    def settled() -> Flow[int]:
        targets = yield from targets_of(engine, keys)
        before, after = engine.view, change(targets)
        is_quoted = any(target.version < after.compacted for target in targets)
        if is_quoted and after.state.withheld != before.state.withheld:
            log = yield from engine.events()
            after = without_quotes(after, log, engine.clock())
        return (yield from engine.settle(after))

    return (yield from engine.repeated(settled))


def inherit(engine: Engine, hides: Hides, *, exactly: bool) -> Flow[None]:
    """Hide the blocks of a fork that are hidden in the timeline that it continues, in one commit; with `exactly`, also
    show those that are shown there, and without, also hide those that say the same."""

    def settled() -> Flow[None]:
        known = engine.view.state.withheld
        if not hides.by_block and not (exactly and known):
            return
        log, now = (yield from engine.events()), hides.by_block
        if not exactly:
            blocks = [block for _, block in blocks_of(log)]
            again = hides.again(blocks, {block.id for block in blocks})
            before = {block: Hidden(block=block) for block in known}
            now = {**{item.block: item for item in again}, **before, **now}
            if now.keys() == known.keys():
                return
        yield from engine.settle(withheld_as(engine.view, log, now, engine.clock()))

    yield from engine.repeated(settled)


def hides_of(engine: Engine) -> Flow[Hides]:
    """What is hidden on request in a timeline."""
    return Hides.of((yield from engine.events())) if engine.view.state.withheld else Hides()


def targets_of(engine: Engine, keys: Sequence[str]) -> Flow[list[Target]]:
    """The blocks with these paths or ids, whether visible or folded; if some are folded, the log is read once."""
    found = list[Target]()
    folded: Mapping[str, Target] | None = None
    for key in dict.fromkeys(keys):
        known = engine.view.find(key)
        if known is not None and known.version:
            found.append(Target(known.version, known.source))
            continue
        if folded is None:
            folded = _by_name((yield from engine.events()))
        target = folded.get(key) or folded.get((yield from engine.read(key)).id)
        if target is None:  # a summary; it cannot be hidden
            raise (yield from engine.unknown(key))
        found.append(target)
    return found


def _by_name(log: Sequence[Recorded]) -> Mapping[str, Target]:
    """The blocks of a log by id, path and label; without paths if the beginning of the log is not stored any more."""
    found: dict[str, Target] = {}
    naming = Naming() if log and log[0][0] == 1 else None
    for version, event in log:
        if isinstance(event, BlockAppended):
            block, target = event.block, Target(version, event.block)
            path = naming.path(block, version) if naming else path_at(block, version)
            for name in (block.id, path, path_at(block, version), label_of(version)):
                found.setdefault(name, target)
    return found


def content_id(block: Block) -> ArtifactId:
    """The id of the artifact that holds a result's content when it is externalized; empty for other blocks."""
    if not isinstance(block, ToolResult):
        return ArtifactId("")
    return block.artifact or artifact_id(text_of(block).encode(errors="surrogatepass"))
