"""The app that most wire tests speak to: one of each kind."""

from typing import Annotated, Any

from pydantic import Field

from mcpkit import App, Context, Result, ToolError

ASKED = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}
"""The question that the tool `order` asks."""


def bookshop(calls: list[str] | None = None, **options: Any) -> App:
    """Build the app.

    Args:
        calls: Where each handler notes that it ran.
        options: Those of `App`.
    """
    ran: list[str] = [] if calls is None else calls
    app = App(**{"name": "bookshop", "version": "1.0.0", **options})
    _add_tools(app, ran)
    _add_what_is_read(app, ran)
    return app


def _add_tools(app: App, ran: list[str]) -> None:
    @app.tool
    async def add(a: int, b: int) -> int:
        ran.append("add")
        return a + b

    @app.tool
    def echo(text: str) -> str:
        ran.append("echo")
        return text

    @app.tool
    async def whoami(ctx: Context) -> str:
        ran.append("whoami")
        return str(ctx.principal_id)

    @app.tool
    async def fail() -> str:
        raise ToolError("Sold out.")

    @app.tool
    async def ship(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
        count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 1,
        *,
        rush: Annotated[
            bool, Field(json_schema_extra={"x-mcp-header": "Rush"})
        ] = False,
    ) -> str:
        ran.append("ship")
        return f"{count} to {region}{' now' if rush else ''}"

    @app.tool
    async def order(ctx: Context) -> Result:
        ran.append("order")
        if "sure" in ctx.input.responses:
            return Result.text("ordered")
        return Result.input_required({"sure": ASKED}, "state")


def _add_what_is_read(app: App, ran: list[str]) -> None:
    @app.resource("shop://hours")
    async def hours() -> str:
        ran.append("hours")
        return "9 to 5"

    @app.resource("books://{isbn}")
    async def book(isbn: str) -> str:
        ran.append("book")
        return f"Book {isbn}"

    @app.prompt
    async def review(title: str) -> str:
        ran.append("review")
        return f"Review {title}."

    @app.complete("review", "title")
    async def titles(value: str) -> list[str]:
        ran.append("titles")
        return [f"{value} Messiah"]
