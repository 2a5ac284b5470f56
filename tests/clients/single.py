"""Servers of one era, for the clients that find out which."""

from collections.abc import Collection

from mcpkit import App
from mcpkit.protocol.versions import Era


def build(eras: Collection[Era]) -> App:
    """Build an app that speaks these eras."""
    app = App("single", eras=eras)

    @app.tool
    def greet(name: str) -> str:
        """Greet someone by name."""
        return f"Hello, {name}!"

    return app


legacy = build({"legacy"})
modern = build({"modern"})
