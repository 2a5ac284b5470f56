from fastapi import FastAPI

from mcpkit import App

app = App("shop")
staff = App("staff", path="")


@app.tool
def search(title: str) -> str:
    """Search the catalogue."""
    return f"There is one copy of {title}."


@staff.tool
def restock(title: str, copies: int) -> str:
    """Order more copies."""
    return f"Ordered {copies} of {title}."


api = FastAPI()
api.mount("/shop", app)  # at /shop/mcp
api.include_router(staff.router, prefix="/staff")  # at /staff
