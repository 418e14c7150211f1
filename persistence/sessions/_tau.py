"""tau-bench results: a list of conversations in chat messages, without times; `file#3` chooses one."""

from blocks.formats import objs
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_message
from persistence.sessions._session import Session
from persistence.sessions._source import Source

NAME = "tau-bench"


def looks(source: Source) -> bool:
    """Whether these are results of tau-bench."""
    return all("traj" in run and "task_id" in run for _, run in source.head)


def read(source: Source) -> Session:
    """The requested conversation of `source`, or the first."""
    builder = Builder(source, NAME)
    run = builder.pick([run for _, run in source.records])
    for message in objs(run.get("traj")):
        add_message(builder, 0, message)
    return builder.build()
