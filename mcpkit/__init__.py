"""A decorator-driven microframework for Model Context Protocol servers."""

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
from mcpkit.telemetry import Event
from mcpkit.toolbox import Toolbox

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
    "File",
    "Header",
    "Image",
    "ListRoots",
    "LogHandler",
    "MCPKitError",
    "MemoryBackend",
    "Message",
    "ModelPreferences",
    "ProtocolError",
    "Reply",
    "ResourceLink",
    "ResourceNotFoundError",
    "Response",
    "Result",
    "Root",
    "Sample",
    "Sampled",
    "ScopeError",
    "Session",
    "SetupError",
    "Text",
    "ToolError",
    "Toolbox",
    "UIOptions",
    "dispatch",
    "handle_request",
    "methods",
]
