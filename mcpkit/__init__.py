"""A decorator-driven microframework for Model Context Protocol servers."""

import importlib
import typing

from mcpkit.app import App
from mcpkit.arguments import Header
from mcpkit.backends.base import Backend
from mcpkit.backends.memory import MemoryBackend
from mcpkit.blocks import Audio, File, Image
from mcpkit.context import Context, Session
from mcpkit.dispatch import (
    Accepted,
    Reply,
    Response,
    dispatch,
    handle_request,
)
from mcpkit.errors import (
    AnswerError,
    MCPKitError,
    ProtocolError,
    ResourceNotFoundError,
    ScopeError,
    SetupError,
    ToolError,
)
from mcpkit.extensions.apps import UI, UIOptions
from mcpkit.extensions.base import Extension, ExtensionMethod
from mcpkit.logs import LogHandler
from mcpkit.protocol.content import Message, ResourceLink, Text
from mcpkit.protocol.methods import methods
from mcpkit.protocol.results import Cache, Result
from mcpkit.questions import (
    Answer,
    Elicit,
    ListRoots,
    ModelPreferences,
    Root,
    Sample,
    Sampled,
)
from mcpkit.stores.base import TaskRecord, TaskStore
from mcpkit.telemetry import Event
from mcpkit.toolbox import Toolbox

if typing.TYPE_CHECKING:
    from mcpkit.extensions.tasks import Tasks
    from mcpkit.stores.memory import MemoryTaskStore
    from mcpkit.stores.sqlite import SQLiteTaskStore

__version__ = "0.1.0"

__all__ = [
    "UI",
    "Accepted",
    "Answer",
    "AnswerError",
    "App",
    "Audio",
    "Backend",
    "Cache",
    "Context",
    "Elicit",
    "Event",
    "Extension",
    "ExtensionMethod",
    "File",
    "Header",
    "Image",
    "ListRoots",
    "LogHandler",
    "MCPKitError",
    "MemoryBackend",
    "MemoryTaskStore",
    "Message",
    "ModelPreferences",
    "ProtocolError",
    "Reply",
    "ResourceLink",
    "ResourceNotFoundError",
    "Response",
    "Result",
    "Root",
    "SQLiteTaskStore",
    "Sample",
    "Sampled",
    "ScopeError",
    "Session",
    "SetupError",
    "TaskRecord",
    "TaskStore",
    "Tasks",
    "Text",
    "ToolError",
    "Toolbox",
    "UIOptions",
    "dispatch",
    "handle_request",
    "methods",
]


_LATER: typing.Final = {
    "MemoryTaskStore": "mcpkit.stores.memory",
    "SQLiteTaskStore": "mcpkit.stores.sqlite",
    "Tasks": "mcpkit.extensions.tasks",
}
"""What is loaded by those alone who have tasks, and SQLite with it."""


def __getattr__(name: str) -> typing.Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
