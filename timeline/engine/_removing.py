"""Operations that remove content from the store: what the window does not need, or what is to be forgotten."""

from functools import partial
from os import PathLike

import attrs

from blocks import MisuseError
from persistence import Removed, Retains
from timeline._flow import Flow, RunBlocking
from timeline.arguments._checks import checked_text
from timeline.engine._appends import Appending
from timeline.engine._forgetting import Forgotten, forget_artifact, forget_block, forget_timeline
from timeline.engine._retention import Keeping, Retention


@attrs.frozen(kw_only=True)
class Removing(Appending):
    """The operations that remove events."""

    def retain(
        self, retention: Keeping, *, archive: "str | PathLike[str] | None" = None
    ) -> Flow[Removed]:
        """Remove the events that the window does not need (`"forget"`), or move them into a file in the folder
        `archive` (`"archive"`); return how many.  Artifacts that have expired (`Policy.artifact_seconds`) are removed
        in any case.

        Raises:
            MisuseError: there is no such retention or folder, or the store cannot remove events.
        """
        store = self.engine.store
        wanted = Retention.of(retention, archive, store)
        self.engine.check_open()
        yield from self.engine.artifact_service.sweep()
        yield from self.engine.flush()
        compaction = self.engine.view.compaction
        if wanted.keeping == "keep" or compaction is None or not isinstance(store, Retains):
            return Removed()
        trim = partial(wanted.trim, store, self.engine.id, compaction.event.cut)
        done: Removed = yield RunBlocking(trim)
        return done

    def forget(self, path: str | None = None, *, artifact: str | None = None) -> Flow[Forgotten]:
        """Remove a block, an artifact or, without arguments, the whole timeline from the store for good; return what
        was removed, and where copies may remain.

        Raises:
            UnknownPathError: no block was ever appended at this path.
            ForgottenError: the block was forgotten already.
            MisuseError: there is no such artifact, both were given, or the store cannot remove events.
        """
        if path is not None and artifact is not None:
            raise MisuseError("forget(): give a path or an artifact, not both")
        for name, given in (("path", path), ("artifact", artifact)):
            if given is not None:
                checked_text(given, "forget()", name)
        yield from self.engine.flush()
        if artifact is not None:
            return (yield from forget_artifact(self.engine, artifact))
        if path is not None:
            return (yield from forget_block(self.engine, path))
        return (yield from forget_timeline(self.engine))
