from mcpkit import App

app = App("hello")


@app.tool
def greet(name: str) -> str:
    """Greet someone by name."""
    return f"Hello, {name}!"
