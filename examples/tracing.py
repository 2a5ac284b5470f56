from mcpkit import App
from mcpkit.otel import instrument

app = App("tracing")
instrument(app)


@app.tool
def search(title: str) -> str:
    """Search the catalogue."""
    return f"There is one copy of {title}."
