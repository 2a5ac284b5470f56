from mcpkit import App, ToolError

app = App("live")


@app.tool
async def define(name: str, text: str) -> str:
    """Make a tool that returns a text."""

    async def say() -> str:
        return text

    app.add_tool(say, name=name, description=f"Return the {name}.", replace=True)
    return f"{name} is a tool now."


@app.tool
async def forget(name: str) -> str:
    """Remove a tool."""
    if name not in app.registry.tools:
        raise ToolError(f"There is no tool {name}.")
    app.remove_tool(name)
    return f"{name} is gone."
