"""A small, complete agent on a timeline: ask the model, run its tools, until it is done.

agent = ReactAgent(timeline, anthropic.Anthropic(), tools=[read_file], system="You ...")
outcome = agent.run("Why does the nightly job fail?")
"""

from timeline.react._agent import AsyncReactAgent as AsyncReactAgent
from timeline.react._agent import ReactAgent as ReactAgent
from timeline.react._reading import reading_tools as reading_tools
from timeline.react._settings import AgentHooks as AgentHooks
from timeline.react._settings import AgentSettings as AgentSettings
from timeline.react._settings import Outcome as Outcome
from timeline.react._settings import SessionStarted as SessionStarted
from timeline.react._settings import StepDone as StepDone
from timeline.react._settings import StepStarted as StepStarted
from timeline.react._settings import StreamLost as StreamLost
from timeline.react._settings import Usage as Usage
from timeline.react._tools import Tool as Tool
from timeline.react._tools import ToolReply as ToolReply
from timeline.react._tools import file_state as file_state
from timeline.react._tools import tool as tool
