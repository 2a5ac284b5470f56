"""A decorator-driven microframework for Model Context Protocol servers."""

from mcpkit.app import App
from mcpkit.arguments import Header
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
    MCPKitError,
    ProtocolError,
    ResourceNotFoundError,
    ScopeError,
    SetupError,
    ToolError,
)
from mcpkit.protocol.content import Message, ResourceLink, Text
from mcpkit.protocol.methods import methods
from mcpkit.protocol.results import Cache, Result
from mcpkit.toolbox import Toolbox

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "App",
    "Audio",
    "Cache",
    "Context",
    "File",
    "Header",
    "Image",
    "MCPKitError",
    "Message",
    "ProtocolError",
    "Reply",
    "ResourceLink",
    "ResourceNotFoundError",
    "Response",
    "Result",
    "ScopeError",
    "Session",
    "SetupError",
    "Text",
    "ToolError",
    "Toolbox",
    "dispatch",
    "handle_request",
    "methods",
]
