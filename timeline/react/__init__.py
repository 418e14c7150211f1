"""A small, complete agent on a timeline: ask the model, run its tools, until it is done.

agent = ReactAgent(timeline, anthropic.Anthropic(), tools=[read_file], system="You ...")
outcome = agent.run("Why does the nightly job fail?")
"""

from timeline.react._agent import AsyncReactAgent, ReactAgent
from timeline.react._events import (
    AgentHooks,
    ApprovalNeeded,
    Outcome,
    SessionStarted,
    StepDone,
    StepStarted,
    StreamLost,
    TextDelta,
    ToolDone,
    ToolStarted,
)
from timeline.react._limits import Limits
from timeline.react._mcp import McpServer
from timeline.react._output import OutputError
from timeline.react._reading import reading_tools
from timeline.react._settings import AgentSettings
from timeline.react._subagent import SubAgent
from timeline.react._tools import RunContext, ToolReply, file_state, tool

__all__ = [
    "AgentHooks",
    "AgentSettings",
    "ApprovalNeeded",
    "AsyncReactAgent",
    "Limits",
    "McpServer",
    "Outcome",
    "OutputError",
    "ReactAgent",
    "RunContext",
    "SessionStarted",
    "StepDone",
    "StepStarted",
    "StreamLost",
    "SubAgent",
    "TextDelta",
    "ToolDone",
    "ToolReply",
    "ToolStarted",
    "file_state",
    "reading_tools",
    "tool",
]

# For the rooms of this house; not public.
from timeline.react._loop import measured as measured
from timeline.react._reading import HITS_MAX as HITS_MAX
from timeline.react._reading import MARK as MARK
from timeline.react._reading import Room as Room
from timeline.react._reading import refused as refused
from timeline.react._tools import Tool as Tool
