"""Session logs of other agents, read into one neutral form."""

from persistence.sessions._read import read_session

__all__ = ["read_session"]

# For the rooms of this house; not public.
from persistence.sessions._export import export_lines as export_lines
from persistence.sessions._export import exported_events as exported_events
from persistence.sessions._read import read_conversations as read_conversations
from persistence.sessions._session import Arrived as Arrived
from persistence.sessions._session import Item as Item
from persistence.sessions._session import Responded as Responded
from persistence.sessions._session import Session as Session
