"""What a transport of one's own gets, where there are no headers."""

from typing import Any

import pytest

from mcpkit import (
    App,
    ResourceNotFoundError,
    Response,
    SetupError,
    dispatch,
    handle_request,
)


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def initialize(version: str) -> dict[str, Any]:
    client = {"name": "tests", "version": "1"}
    return request(
        "initialize",
        protocolVersion=version,
        capabilities={"roots": {}},
        clientInfo=client,
    )


@pytest.mark.parametrize(
    ("version", "structured"),
    [("2025-11-25", True), ("2025-06-18", True), ("2025-03-26", False)],
)
async def test_a_session_carries_what_was_negotiated(
    version: str, *, structured: bool
) -> None:
    """Spec 2025-11-25, basic/lifecycle: Version Negotiation."""
    app = App("shop")

    @app.tool
    def total() -> int:
        return 3

    opened = await dispatch(initialize(version), app)
    assert isinstance(opened, Response)
    assert opened.session is not None
    assert (opened.session.version, opened.session.capabilities) == (
        version,
        {"roots": {}},
    )
    assert opened.headers == ()
    called = await handle_request(
        request("tools/call", name="total"), app, session=opened.session
    )
    assert called is not None
    assert ("structuredContent" in called["result"]) is structured


async def test_a_function_can_say_that_there_is_no_such_resource() -> None:
    """Spec 2025-11-25, server/resources: Error Handling."""
    app = App("shop")

    @app.resource("books://{isbn}")
    def book(isbn: str) -> str:
        assert isbn == "1"
        raise ResourceNotFoundError

    response = await handle_request(request("resources/read", uri="books://1"), app)
    assert response is not None
    assert response["error"] == {
        "code": -32002,
        "message": "Resource not found",
        "data": {"uri": "books://1"},
    }


@pytest.mark.parametrize("reference", ["review", "books://{isbn}"])
def test_a_completion_of_no_argument_is_a_setup_error(reference: str) -> None:
    """Ours: a mistake is found when the function is registered."""
    app = App("shop")

    @app.prompt
    def review(title: str) -> str:
        raise NotImplementedError

    @app.resource("books://{isbn}")
    def book(isbn: str) -> str:
        raise NotImplementedError

    with pytest.raises(SetupError, match="has no argument 'titel' to complete"):

        @app.complete(reference, "titel")
        def titles(value: str) -> list[str]:
            raise NotImplementedError
