from pathlib import Path

from mcpkit import App

app = App("files")
HERE = Path(__file__).parent

# Every file below the folder, as examples://hello.py. Nothing else can be read.
app.add_directory("examples://", HERE)

# One file, which is listed with its type and its size.
app.add_resource("docs://license", HERE.parent / "LICENSE", mime_type="text/plain")


@app.resource("docs://{name}/source")
def source(name: str) -> Path:
    """Read the source of an example. Where there is no file, nothing is found."""
    return HERE / f"{name}.py"
