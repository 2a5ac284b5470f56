"""Questions to the client, and the capabilities each kind needs.

Spec 2026-07-28, basic/patterns/mrtr: Input Requests.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcpkit.protocol.jsonrpc import is_object

INPUT_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elicitation/create": "elicitation",
        "sampling/createMessage": "sampling",
        "roots/list": "roots",
    }
)
"""The methods a question may have, and the client capability of each."""


def required_capabilities(requests: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the client capabilities that a set of input requests needs.

    Args:
        requests: Input requests by key, each with a `method` and `params`.

    Raises:
        ValueError: A request is not an object with one of the known methods.

    Example:
        >>> required_capabilities({"ask": {"method": "roots/list"}})
        {'roots': {}}
    """
    required: dict[str, Any] = {}
    for key, request in requests.items():
        method = str(request.get("method")) if is_object(request) else ""
        if method not in INPUT_KINDS:
            known = ", ".join(INPUT_KINDS)
            raise ValueError(f"the input request {key!r} needs a method of {known}")
        params = request.get("params")
        needed = required.setdefault(INPUT_KINDS[method], {})
        needed.update(_details(method, params if is_object(params) else {}))
    return required


def _details(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    match method:
        case "elicitation/create":
            return {"url" if params.get("mode") == "url" else "form": {}}
        case "sampling/createMessage":
            needed: dict[str, Any] = {}
            if "tools" in params or "toolChoice" in params:
                needed["tools"] = {}
            if params.get("includeContext", "none") != "none":
                needed["context"] = {}
            return needed
        case _:
            return {}
