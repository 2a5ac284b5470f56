from typing import Any

from mcpkit import App

app = App("schemas")

# As it comes from a file, or from another program.
QUERY = {
    "type": "object",
    "properties": {
        "table": {"enum": ["books", "orders"]},
        "limit": {"type": "integer", "minimum": 1},
    },
    "required": ["table"],
    "additionalProperties": False,
}


@app.tool(input_schema=QUERY)
def query(arguments: dict[str, Any]) -> str:
    """Query a table."""
    limit = arguments.get("limit", 10)
    return f"The first {limit} rows of {arguments['table']}."
