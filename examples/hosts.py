from mcpkit import App

app = App(
    "hosts",
    allowed_hosts=["mcp.example.com", "localhost"],
    allowed_origins=["https://chat.example.com", "http://localhost:*"],
)


@app.tool
def ping() -> str:
    """Answer."""
    return "pong"
