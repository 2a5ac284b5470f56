from functools import partial

from mcpkit import App

app = App("paging", page_size=2)


def describe(season: str) -> str:
    """Describe a season."""
    return f"In {season} you would like it here."


for name in ("spring", "summer", "autumn", "winter"):
    app.add_tool(partial(describe, name), name=name)
