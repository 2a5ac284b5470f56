"""Which function serves which method: a row for each request in `METHODS`."""

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from mcpkit.context import Context
from mcpkit.methods import (
    completion,
    discover,
    lifecycle,
    prompts,
    resources,
    subscriptions,
    tools,
)
from mcpkit.protocol.results import Result
from mcpkit.server import Server

Serve: TypeAlias = Callable[[Server, Context], Coroutine[Any, Any, Result]]

SERVED_BY: Final[Mapping[str, Serve]] = MappingProxyType(
    {
        "server/discover": discover.discover,
        "initialize": lifecycle.initialize,
        "ping": lifecycle.ping,
        "logging/setLevel": lifecycle.set_level,
        "tools/list": tools.list_tools,
        "tools/call": tools.call_tool,
        "resources/list": resources.list_resources,
        "resources/templates/list": resources.list_templates,
        "resources/read": resources.read_resource,
        "resources/subscribe": subscriptions.subscribe,
        "resources/unsubscribe": subscriptions.unsubscribe,
        "subscriptions/listen": subscriptions.listen,
        "prompts/list": prompts.list_prompts,
        "prompts/get": prompts.get_prompt,
        "completion/complete": completion.complete,
    }
)
