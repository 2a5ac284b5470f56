import asyncio

from mcpkit import App, Context, SQLiteTaskStore, Tasks

app = App("resuming", tasks=Tasks(SQLiteTaskStore("tasks.sqlite3")))


def send(order: int) -> str:
    """Send a parcel, and return its number. This must not happen twice."""
    print(f"sends order {order}", flush=True)
    return f"NO-{order}"


@app.tool(task="required", resumable=True)
async def ship(orders: list[int], ctx: Context) -> list[str]:
    """Ship orders, each once, although the server may be restarted in between."""
    parcels: list[str] = []
    for order in orders:
        await ctx.progress(len(parcels), len(orders), f"Order {order}")
        parcels.append(await ctx.once(f"order {order}", send, order))
        await asyncio.sleep(1)
    return parcels
