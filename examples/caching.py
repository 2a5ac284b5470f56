from mcpkit import App, Cache

app = App(
    "caching",
    ttl_ms=5_000,
    cache={"resources/list": Cache(ttl_ms=3_600_000, scope="public")},
)


@app.resource("news://today")
def news() -> str:
    """Read what happened: kept for five seconds, as everything here is."""
    return "It rained."


@app.resource("shop://terms", ttl_ms=86_400_000, cache_scope="public")
def terms() -> str:
    """Read the terms: kept for a day, and the same for everybody."""
    return "Be kind."
