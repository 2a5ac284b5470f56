"""What an app tells those who listen, and what its log of requests has."""

import logging
from typing import Any, Final, TypeAlias

import pytest

from mcpkit import App
from mcpkit.telemetry import EVENTS, Event
from tests.http.client import MODERN

TRACE: Final[dict[str, Any]] = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "tracestate": "a=1",
    "baggage": "user=ada",
}
NO_TRACE: Final = dict.fromkeys(TRACE)

Told: TypeAlias = list[tuple[str, dict[str, Any]]]


def told_by(app: App) -> Told:
    """Note the name and the metadata of each event; check the rest."""
    told: Told = []

    @app.telemetry.listen
    def note(event: Event) -> None:
        took_time = event.name not in {
            "mrtr.input_required",
            "request.cancelled",
            "subscription.start",
        }
        assert (event.duration is not None) is took_time
        assert event.duration is None or 0 <= event.duration < 20
        assert tuple(event.metadata) == EVENTS[event.name]
        told.append((event.name, dict(event.metadata)))

    return told


def spoken(at: str) -> dict[str, str]:
    """Return what an event has of a revision."""
    return {"era": "modern" if at == MODERN else "legacy", "version": at}


def stop(
    at: str,
    method: str,
    target: str | None = None,
    code: int | None = None,
    **trace: Any,
) -> tuple[str, dict[str, Any]]:
    """Return the event that a request was answered."""
    status = "ok" if code is None else "error"
    about = {"method": method, "target": target, "status": status, "code": code}
    return "request.stop", {**about, **spoken(at), **NO_TRACE, **trace}


def ran(
    name: str,
    at: str,
    target: str | None,
    status: str = "ok",
    code: int | None = None,
) -> tuple[str, dict[str, Any]]:
    """Return the event that a handler ran."""
    return name, {"target": target, "status": status, "code": code, **spoken(at)}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log of requests, with T for the time."""
    found = []
    for record in caplog.records:
        if record.name == "mcpkit.access":
            assert record.levelno == logging.INFO
            *before, seconds, principal = record.getMessage().split(" ")
            assert 0 <= float(seconds.removesuffix("ms")) < 20_000
            found.append(" ".join([*before, "T", principal]))
    return found
