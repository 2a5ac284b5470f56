"""The table of methods, row by row, and against the models of the official types."""

import doctest

import pytest
from mcp_types.methods import (
    CACHEABLE_METHODS,
    CLIENT_NOTIFICATIONS,
    CLIENT_REQUESTS,
    INPUT_REQUIRED_METHODS,
)

from mcpkit.protocol import methods as module
from mcpkit.protocol.methods import METHODS, Method, methods
from mcpkit.protocol.versions import ERAS, Era, versions

MODERN: frozenset[Era] = frozenset({"modern"})
LEGACY: frozenset[Era] = frozenset({"legacy"})


def listing(name: str, capability: str) -> Method:
    return Method(
        name=name, eras=ERAS, capability=capability, cacheable=True, listing=True
    )


ROWS = [
    Method(name="server/discover", eras=MODERN, cacheable=True, listing=True),
    Method(name="initialize", eras=LEGACY),
    Method(name="ping", eras=LEGACY),
    Method(name="logging/setLevel", eras=LEGACY, capability="logging"),
    listing("tools/list", "tools"),
    Method(
        name="tools/call", eras=ERAS, capability="tools", may_ask=True, named_by="name"
    ),
    listing("resources/list", "resources"),
    listing("resources/templates/list", "resources"),
    Method(
        name="resources/read",
        eras=ERAS,
        capability="resources",
        cacheable=True,
        may_ask=True,
        named_by="uri",
    ),
    Method(name="resources/subscribe", eras=LEGACY, capability="resources"),
    Method(name="resources/unsubscribe", eras=LEGACY, capability="resources"),
    Method(name="subscriptions/listen", eras=MODERN),
    listing("prompts/list", "prompts"),
    Method(
        name="prompts/get",
        eras=ERAS,
        capability="prompts",
        may_ask=True,
        named_by="name",
    ),
    Method(name="completion/complete", eras=ERAS, capability="completions"),
    Method(name="notifications/initialized", eras=LEGACY, notification=True),
    Method(name="notifications/cancelled", eras=LEGACY, notification=True),
    Method(name="notifications/roots/list_changed", eras=LEGACY, notification=True),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_method_has_its_row(row: Method) -> None:
    """Spec 2026-07-28 and 2025-11-25, schema; ours: which of them are routed."""
    assert METHODS[row.name] == row


def test_no_other_method_is_routed() -> None:
    assert [*METHODS] == [row.name for row in ROWS]


@pytest.mark.parametrize("name", METHODS)
def test_the_eras_of_a_method_are_those_of_the_schemas(name: str) -> None:
    """Spec 2026-07-28 and 2025-11-25, schema."""
    method = METHODS[name]
    known = CLIENT_NOTIFICATIONS if method.notification else CLIENT_REQUESTS
    eras: frozenset[Era] = frozenset(
        era
        for era in ERAS
        if all((name, version) in known for version in versions(era))
    )
    # The modern cancellation belongs to stdio: over HTTP there is none.
    if name == "notifications/cancelled":
        eras = LEGACY
    assert method.eras == eras


def test_the_cacheable_methods_are_those_of_the_schema() -> None:
    """Spec 2026-07-28, server/utilities/caching: Cacheable Results."""
    assert {name for name, row in METHODS.items() if row.cacheable} == CACHEABLE_METHODS


def test_the_methods_that_may_ask_are_those_of_the_schema() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Supported Requests."""
    asking = {name for name, row in METHODS.items() if row.may_ask}
    assert asking == INPUT_REQUIRED_METHODS


def test_the_names_that_headers_mirror() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Standard Request Headers."""
    assert {name: row.named_by for name, row in METHODS.items() if row.named_by} == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
    }


def test_methods_maps_every_routed_method_to_its_internal_name() -> None:
    """Seed ConduitMcp.Handler: methods/0."""
    assert methods() == {
        "server/discover": "server_discover",
        "initialize": "initialize",
        "ping": "ping",
        "logging/setLevel": "logging_setLevel",
        "tools/list": "tools_list",
        "tools/call": "tools_call",
        "resources/list": "resources_list",
        "resources/templates/list": "resources_templates_list",
        "resources/read": "resources_read",
        "resources/subscribe": "resources_subscribe",
        "resources/unsubscribe": "resources_unsubscribe",
        "subscriptions/listen": "subscriptions_listen",
        "prompts/list": "prompts_list",
        "prompts/get": "prompts_get",
        "completion/complete": "completion_complete",
        "notifications/initialized": "notifications_initialized",
        "notifications/cancelled": "notifications_cancelled",
        "notifications/roots/list_changed": "notifications_roots_list_changed",
    }


def test_methods_of_the_modern_era_are_without_the_legacy_ones() -> None:
    """Seed ConduitMcp.Handler: methods/1."""
    assert [*methods("modern")] == [
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "subscriptions/listen",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ]


def test_methods_of_the_legacy_era_have_its_notifications() -> None:
    """Seed ConduitMcp.Handler: methods/1, `:legacy` includes its notifications."""
    assert methods("legacy") == {
        name: internal
        for name, internal in methods().items()
        if name not in {"server/discover", "subscriptions/listen"}
    }


def test_the_table_cannot_be_written_to() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        METHODS["ping"] = ROWS[0]  # type: ignore[index]  # the point


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
