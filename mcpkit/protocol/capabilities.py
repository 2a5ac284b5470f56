"""What the server declares, and what a client lacks.

Server capabilities follow what is registered at the moment they are asked for.
`listChanged` and `subscribe` are declared to an era for which `METHODS` routes a
way to be told.

Spec 2026-07-28, server/discover and basic/index: `_meta`.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcpkit.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolError
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.methods import methods
from mcpkit.protocol.versions import Era

_CHANGES: Final[Mapping[Era, str]] = MappingProxyType(
    {"modern": "subscriptions/listen", "legacy": "resources/subscribe"}
)
"""The method by which a client of each era follows changes."""


def server_capabilities(
    registered: Collection[str],
    era: Era,
    *,
    custom: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the capabilities for `initialize` or `server/discover`.

    Args:
        registered: The capabilities of which something is registered: any of
            tools, resources, prompts, completions and logging.
        era: The era of the client that asks.
        custom: Capabilities that are declared as they are given, beside those
            that follow from what is registered or in their place. One that is
            `None` is not declared.
    """
    changes = _CHANGES[era] in methods(era)
    built: dict[str, Any] = {}
    for name in ("tools", "resources", "prompts"):
        if name in registered:
            built[name] = {"listChanged": True} if changes else {}
    if changes and "resources" in built:
        built["resources"]["subscribe"] = True
    for name in ("completions", "logging"):
        if name in registered:
            built[name] = {}
    merged = {**built, **(custom or {})}
    return {name: value for name, value in merged.items() if value is not None}


def missing_capabilities(
    required: Mapping[str, Any], declared: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the part of `required` that the client has not declared.

    An `elicitation` without a mode means the form mode.

    Example:
        >>> missing_capabilities({"sampling": {}, "roots": {}}, {"roots": {}})
        {'sampling': {}}
        >>> missing_capabilities({"elicitation": {"form": {}}}, {"elicitation": {}})
        {}
    """
    missing: dict[str, Any] = {}
    for name, needed in required.items():
        has = declared.get(name)
        if not is_object(has):
            missing[name] = needed
            continue
        if name == "elicitation" and not ("form" in has or "url" in has):
            has = {**has, "form": {}}
        lacking = {key: value for key, value in needed.items() if key not in has}
        if lacking:
            missing[name] = lacking
    return missing


def check_capabilities(
    required: Mapping[str, Any], declared: Mapping[str, Any]
) -> None:
    """Refuse a request that needs what its client has not declared.

    Raises:
        ProtocolError: -32021, `data.requiredCapabilities` has what is missing.
    """
    missing = missing_capabilities(required, declared)
    if missing:
        raise missing_capabilities_error(missing)


def missing_capabilities_error(missing: Mapping[str, Any]) -> ProtocolError:
    """Return the error that names what a client lacks.

    Example:
        >>> missing_capabilities_error({"roots": {}}).code
        -32021
    """
    names = [
        named
        for name, needed in missing.items()
        for named in (needed if name == "extensions" else [name])
    ]
    return ProtocolError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"Missing required client capability: {', '.join(names)}",
        {"requiredCapabilities": missing},
    )
