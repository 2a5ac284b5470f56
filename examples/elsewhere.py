from typing import Annotated

from fastapi import Body, FastAPI, HTTPException

from mcpkit import App, Context, Result, Tasks

app = App("elsewhere", tasks=Tasks())


@app.tool
async def print_book(title: str, ctx: Context) -> Result[int]:
    """Print a book, and return how many pages it has."""
    handle = await app.tasks.create(ctx, message="It waits for the printer.")
    print(f"to the printer: {title}, job {handle.value['taskId']}", flush=True)
    return handle


api = FastAPI()
api.include_router(app.router)


@api.put("/jobs/{task_id}")
async def printed(task_id: str, pages: Annotated[int, Body()]) -> None:
    """Hear from the printer. Yours would have to show who it is."""
    try:
        await app.tasks.complete(task_id, pages)
    except KeyError:
        raise HTTPException(404, "Nobody waits for this job any more.") from None
