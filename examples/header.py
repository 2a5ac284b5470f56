from typing import Annotated

from mcpkit import App, Header

app = App("header")


@app.tool
def count(table: str, region: Annotated[str, Header("Region")]) -> str:
    """Count the rows of a table, in the region where it is kept."""
    return f"There are 3 rows in {table} in {region}."
