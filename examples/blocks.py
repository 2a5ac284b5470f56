from datetime import UTC, datetime
from pathlib import Path

from mcpkit import App, File, Image, ResourceLink, Result, Text, ToolError

app = App("blocks")
HERE = Path(__file__).parent


@app.tool
def look(name: str) -> list[Text | File | ResourceLink]:
    """Look at an example: what is in it, and where there is more."""
    path = HERE / f"{Path(name).name}.py"
    if not path.exists():
        raise ToolError(f"There is no example {name}")
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return [
        Text("Here it is:", annotations={"audience": ["user"], "priority": 0.2}),
        File.from_path(path, annotations={"lastModified": modified}),
        ResourceLink("https://modelcontextprotocol.io", "The specification"),
    ]


@app.tool
def dot() -> Result:
    """Draw a dot, and say who drew it."""
    gif = "47494638396101000100800000ff0000ffffff2c00000000010001000002"
    drawn_by = {"example.com/artist": "blocks.py"}
    return Result.content(Image(bytes.fromhex(gif)), metadata=drawn_by)
