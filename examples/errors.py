from mcpkit import App, ProtocolError, ToolError

app = App("errors")


@app.tool
def divide(a: float, b: float) -> float:
    """Divide two numbers."""
    if b == 0:
        raise ToolError("b is zero. Ask for another number.")
    return a / b


@app.tool
def balance() -> int:
    """Return the balance of the account."""
    raise ConnectionError("postgres://admin:secret@db is down")


@app.tool
def order() -> str:
    """Order a book."""
    raise ProtocolError(-32000, "The shop is closed", {"opens": "09:00"})
