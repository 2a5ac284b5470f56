"""What a handler keeps with the client between two rounds, in each form it may have.

Spec 2026-07-28, basic/patterns/mrtr: Server Requirements.
"""

import asyncio
import base64
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from mcpkit import App, Context, Result, SetupError
from mcpkit.errors import INVALID_PARAMS
from mcpkit.protocol.sealing import SealError
from mcpkit.server import STATE_SECONDS
from tests.calls import call, reply, text

ROOT: Final = Path(__file__).parent.parent
KEY, OLD, STRANGE = "k" * 32, "o" * 32, "x" * 32

BINDING: Final = [
    "the bookshop",
    "tools/call",
    "order one copy",
    {"isbn of the book": "9780441172719"},
    "ada@example.com",
    1,
]
PAYLOAD: Final = {"step": 2, "secret": "sk-live-1234567890"}


class Loose:
    """A codec that protects nothing, and reads many tokens as one."""

    def seal(self, data: bytes) -> str:
        """Make a token."""
        return data.hex()

    def open(self, token: str) -> bytes:
        """Read a token, whatever its case and the white space around it."""
        return bytes.fromhex(token)


class Broken:
    """A codec whose service is not there."""

    def seal(self, data: bytes) -> str:
        """Fail."""
        raise ConnectionError(f"no keys for {len(data)} bytes")

    def open(self, token: str) -> bytes:
        """Fail."""
        raise ConnectionError(f"no keys for {len(token)} letters")


FORMS: Final[Mapping[str, dict[str, Any]]] = {
    "signed": {},
    "encrypted": {"encrypt": True},
    "carried": {"codec": Loose()},
}

in_each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def app_of(form: Mapping[str, Any], *keys: str) -> App:
    return App("bookshop", secret_key=keys or KEY, **form)


async def fault(app: App, token: object, binding: object = None) -> str:
    """Return why a token is refused, for the log."""
    with pytest.raises(SealError) as caught:
        await app.open_state(BINDING if binding is None else binding, token)
    return str(caught.value)


@in_each_form
async def test_what_was_sealed_opens_as_often_as_one_likes(
    form: dict[str, Any],
) -> None:
    """MRTR-15: a state is not for single use, unless it is opened so."""
    app = app_of(form)
    token = app.seal_state(BINDING, PAYLOAD)
    assert [await app.open_state(BINDING, token) for _ in range(3)] == [PAYLOAD] * 3


@in_each_form
async def test_no_two_tokens_are_the_same(form: dict[str, Any]) -> None:
    """Ours: each has an id of its own."""
    app = app_of(form)
    assert len({app.seal_state(BINDING, PAYLOAD) for _ in range(100)}) == 100


def flips(token: str) -> list[str]:
    return [
        token[:index] + chr(ord(letter) ^ 1 << bit) + token[index + 1 :]
        for index, letter in enumerate(token)
        for bit in range(8)
    ]


# A codec of the developer's says itself which texts are one token: see `Loose`.
@pytest.mark.parametrize("name", ["signed", "encrypted"])
async def test_no_bit_of_a_token_can_be_flipped(name: str) -> None:
    """MRTR-01."""
    app = app_of(FORMS[name])
    for flip in flips(app.seal_state(BINDING, PAYLOAD)):
        assert await fault(app, flip)


TAMPERED: dict[str, Callable[[str, str], object]] = {
    # id: of a token and another one, what is sent
    "empty": lambda *_: "",
    "cut": lambda token, _: token[:-1],
    "cut in front": lambda token, _: token[1:],
    "half of it": lambda token, _: token[: len(token) // 2],
    "grown": lambda token, _: f"{token}A",
    "grown by a part": lambda token, _: f"{token}.AAAA",
    "twice": lambda token, _: token * 2,
    "with the front of another": lambda token, other: other[:60] + token[60:],
    "with the end of another": lambda token, other: token[:-60] + other[-60:],
    "1 MiB": lambda *_: "a" * 2**20,
    "a number": lambda *_: 5,
    "false": lambda *_: False,
    "an object": lambda token, _: {"state": token},
    "an array": lambda token, _: [token],
    "beyond ASCII": lambda token, _: f"{token}\u00e9",
    "half a surrogate pair": lambda token, _: f"{token}\ud800",
    "the payload in clear": lambda *_: json.dumps(PAYLOAD),
    "the payload in base64": lambda *_: base64.urlsafe_b64encode(
        json.dumps(PAYLOAD).encode()
    ).decode(),
}


@in_each_form
@pytest.mark.parametrize("name", TAMPERED)
async def test_a_tampered_token_is_refused(form: dict[str, Any], name: str) -> None:
    """MRTR-01."""
    app = app_of(form)
    token, other = (app.seal_state(BINDING, step) for step in (PAYLOAD, "other"))
    assert await fault(app, TAMPERED[name](token, other))


ELSEWHERE: list[tuple[str, list[Any]]] = [
    # id, binding at the opening
    ("another app", ["library", *BINDING[1:]]),
    ("another method", ["the bookshop", "prompts/get", *BINDING[2:]]),
    ("another target", [*BINDING[:2], "cancel", *BINDING[3:]]),
    ("other arguments", [*BINDING[:3], {"isbn of the book": "2"}, *BINDING[4:]]),
    ("another principal", [*BINDING[:4], "bob@example.com", 1]),
    ("nobody", [*BINDING[:4], None, 1]),
    ("another round", [*BINDING[:5], 2]),
]


@in_each_form
@pytest.mark.parametrize(
    "binding", [pytest.param(binding, id=name) for name, binding in ELSEWHERE]
)
async def test_a_token_is_bound(form: dict[str, Any], binding: list[Any]) -> None:
    """MRTR-03."""
    app = app_of(form)
    token = app.seal_state(BINDING, PAYLOAD)
    assert await fault(app, token, binding) == "it is bound to something else"


AGES = [
    # id, seconds later, whether it opens
    ("just before the end", STATE_SECONDS - 0.5, True),
    ("at the end", STATE_SECONDS, False),
    ("after the end", STATE_SECONDS + 1, False),
]


@in_each_form
@pytest.mark.parametrize(
    ("later", "opens"), [pytest.param(*row, id=name) for name, *row in AGES]
)
async def test_a_token_is_good_for_its_time(
    form: dict[str, Any], later: float, monkeypatch: pytest.MonkeyPatch, *, opens: bool
) -> None:
    """MRTR-01: expired at exactly its time."""
    app = app_of(form)
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    token = app.seal_state(BINDING, PAYLOAD)
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0 + later)
    if opens:
        assert await app.open_state(BINDING, token) == PAYLOAD
    else:
        assert await fault(app, token) == "it has expired"


KEYS: list[tuple[str, list[str], list[str], bool]] = [
    # id, keys of the first app, keys of the second, whether it opens the state
    ("one key", [KEY], [KEY], True),
    ("other keys", [KEY], [STRANGE], False),
    ("a new key in front", [OLD], [KEY, OLD], True),
    ("a worker that has the next key already", [KEY, OLD], [OLD, KEY], True),
    ("the new key seals", [KEY, OLD], [KEY], True),
    ("the old one does not", [KEY, OLD], [OLD], False),
    ("a key that was dropped", [OLD], [KEY], False),
]


@in_each_form
@pytest.mark.parametrize(
    ("first", "second", "opens"), [pytest.param(*row, id=name) for name, *row in KEYS]
)
async def test_a_state_holds_where_the_key_is(
    form: dict[str, Any], first: list[str], second: list[str], *, opens: bool
) -> None:
    """MRTR-06."""
    token = app_of(form, *first).seal_state(BINDING, PAYLOAD)
    other = app_of(form, *second)
    if opens:
        assert await other.open_state(BINDING, token) == PAYLOAD
    else:
        assert await fault(other, token)


@in_each_form
async def test_without_a_key_each_app_draws_its_own(
    form: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MRTR-06."""
    monkeypatch.delenv("MCPKIT_SECRET_KEY", raising=False)
    one, two = App("bookshop", **form), App("bookshop", **form)
    token = one.seal_state(BINDING, PAYLOAD)
    assert await one.open_state(BINDING, token) == PAYLOAD
    assert await fault(two, token)


WORKER: Final = """
import multiprocessing, sys
from mcpkit import App

app = App("bookshop")

def work():
    app.seal_state([], 1)
    app.seal_state([], 2)
    app.seal("session", [], 3)

if __name__ == "__main__":
    work()
    print("alone", file=sys.stderr, flush=True)
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)
"""
WARNING: Final = (
    "this process seals tokens that no other worker can open; set MCPKIT_SECRET_KEY "
    "to the same value for all of them"
)
WORKERS: list[tuple[str, str, dict[str, str], list[str]]] = [
    # id, how the worker starts, environment, what is logged
    ("spawned", "spawn", {}, ["alone", WARNING]),
    ("spawned, with a key", "spawn", {"MCPKIT_SECRET_KEY": KEY}, ["alone"]),
]
if hasattr(os, "fork"):
    WORKERS += [
        ("forked", "fork", {}, ["alone", WARNING]),
        ("forked, with a key", "fork", {"MCPKIT_SECRET_KEY": KEY}, ["alone"]),
    ]


@pytest.mark.parametrize(
    ("start", "variables", "logged"),
    [pytest.param(*row, id=name) for name, *row in WORKERS],
)
def test_a_worker_without_a_key_says_so_once(
    start: str, variables: dict[str, str], logged: list[str], tmp_path: Path
) -> None:
    """MRTR-06."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "MCPKIT_SECRET_KEY"}
    done = subprocess.run(  # noqa: S603  # the arguments are ours
        [sys.executable, script, start],
        env=environment | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.splitlines() == logged


async def test_no_form_opens_in_an_app_of_another_form() -> None:
    """Ours: of one key."""
    apps = {name: app_of(form) for name, form in FORMS.items()}
    for one, two in itertools.permutations(apps, 2):
        assert await fault(apps[two], apps[one].seal_state(BINDING, PAYLOAD))


def decoded(token: str) -> bytes:
    """Return what the holder of a token reads in it."""
    text, _, signature = token.lstrip(".").partition(".")
    seen, rest = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        for part in (text, signature)
    )
    return (zlib.decompress(seen) if token.startswith(".") else seen) + rest


@pytest.mark.parametrize(
    ("form", "shows"),
    [
        pytest.param(FORMS["signed"], True, id="signed"),
        pytest.param(FORMS["encrypted"], False, id="encrypted"),
    ],
)
def test_a_state_is_secret_where_it_is_encrypted(
    form: dict[str, Any], *, shows: bool
) -> None:
    """MRTR-07: what it is bound to, and the key, are secret anyway."""
    token = app_of(form).seal_state(BINDING, PAYLOAD)
    seen = decoded(token)
    assert (b"sk-live-1234567890" in seen) == shows
    names = re.findall('"(.*?)"', json.dumps([*BINDING, KEY]))
    assert len(names) == 7
    assert not any(name in token or name.encode() in seen for name in names)


USED: Final = "it was used before"


@in_each_form
async def test_of_two_retries_at_once_one_is_served(form: dict[str, Any]) -> None:
    """MRTR-15."""
    app = app_of(form)
    token = app.seal_state(BINDING, PAYLOAD)
    opened = await asyncio.gather(
        *(app.open_state(BINDING, token, single_use=True) for _ in range(5)),
        return_exceptions=True,
    )
    assert [state for state in opened if state == PAYLOAD] == [PAYLOAD]
    assert [str(state) for state in opened if isinstance(state, SealError)] == [
        USED
    ] * 4


@in_each_form
async def test_another_worker_knows_what_was_used(form: dict[str, Any]) -> None:
    """MRTR-15: where they share a backend."""
    one, two = app_of(form), app_of(form)
    two.backend = one.backend
    token = one.seal_state(BINDING, PAYLOAD)
    assert await two.open_state(BINDING, token, single_use=True) == PAYLOAD
    with pytest.raises(SealError, match=USED):
        await one.open_state(BINDING, token, single_use=True)


@in_each_form
async def test_each_state_can_be_used(form: dict[str, Any]) -> None:
    """MRTR-15: of the same payload and binding, too."""
    app = app_of(form)
    tokens = [app.seal_state(BINDING, PAYLOAD) for _ in range(3)]
    opened = [await app.open_state(BINDING, token, single_use=True) for token in tokens]
    assert opened == [PAYLOAD] * 3


@in_each_form
async def test_a_state_that_was_refused_is_not_used(form: dict[str, Any]) -> None:
    """MRTR-15: somebody else's attempt takes nothing from its owner."""
    app = app_of(form)
    token = app.seal_state(BINDING, PAYLOAD)
    with pytest.raises(SealError, match="bound to something else"):
        await app.open_state(
            [*BINDING[:4], "bob@example.com", 1], token, single_use=True
        )
    assert await app.open_state(BINDING, token, single_use=True) == PAYLOAD


async def test_a_state_is_used_whatever_its_token_looks_like() -> None:
    """MRTR-15: its own id counts, and not the text."""
    app = app_of(FORMS["carried"])
    token = app.seal_state(BINDING, PAYLOAD)
    assert await app.open_state(BINDING, token, single_use=True) == PAYLOAD
    for other in (token.upper(), f" {token}"):
        assert await app.open_state(BINDING, other) == PAYLOAD
        with pytest.raises(SealError, match=USED):
            await app.open_state(BINDING, other, single_use=True)


@in_each_form
def test_what_is_too_large_to_keep_is_an_error(form: dict[str, Any]) -> None:
    """Ours: 64 KiB at most."""
    noise = "".join(f"{number * number:x}" for number in range(20_000))
    with pytest.raises(SealError, match=r"is too large: its token has \d+ bytes"):
        app_of(form).seal_state(BINDING, noise)


async def test_a_codec_that_fails_is_named() -> None:
    """Ours."""
    app = app_of({"codec": Broken()})
    with pytest.raises(SealError) as caught:
        app.seal_state(BINDING, PAYLOAD)
    assert str(caught.value).startswith("codec.seal failed: ConnectionError('no keys")
    assert await fault(app, "token") == (
        "codec.open failed: ConnectionError('no keys for 5 letters')"
    )


async def test_a_state_of_nothing_is_one() -> None:
    app = app_of({})
    assert await app.open_state(BINDING, app.seal_state(BINDING, None)) is None


class Asynchronous:
    """A codec whose methods are async."""

    async def seal(self, data: bytes) -> str:
        """Make a token."""
        raise NotImplementedError

    async def open(self, token: str) -> bytes:
        """Read a token."""
        raise NotImplementedError


class Half:
    """A codec that can't open."""

    def seal(self, data: bytes) -> str:
        """Make a token."""
        raise NotImplementedError


NO_CODEC: Final = (
    "codec is an object with the methods seal(data: bytes) -> str and "
    "open(token: str) -> bytes, neither of them async, not "
)
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "two forms": (
        {"encrypt": True, "codec": Loose()},
        "codec and encrypt=True are two ways to carry a request state: give one",
    ),
    "a class": ({"codec": Loose}, NO_CODEC),
    "async methods": ({"codec": Asynchronous()}, NO_CODEC),
    "one method of two": ({"codec": Half()}, NO_CODEC),
    "a name": ({"codec": "rot13"}, NO_CODEC),
}


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_form_that_cannot_work_is_a_setup_error(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        App("bookshop", **options)
    assert str(caught.value).startswith(message)


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours."""
    monkeypatch.delitem(sys.modules, "mcpkit.crypto", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(SetupError) as caught:
        App("bookshop", encrypt=True)
    assert str(caught.value) == (
        "encrypt=True needs the library cryptography: pip install 'mcpkit[crypto]'"
    )


def asking(form: Mapping[str, Any], *keys: str) -> App:
    """Make an app with a tool that asks to be called again."""
    app = app_of(form, *keys)

    @app.tool
    def order(ctx: Context, isbn: str = "") -> Any:
        return isbn if ctx.is_retry else Result.input_required({}, "secret")

    return app


async def state_of(app: App, isbn: str = "1") -> str:
    params: dict[str, Any] = {"name": "order", "arguments": {"isbn": isbn}}
    asked = await call(app, "tools/call", by="ada", **params)
    state: str = asked["requestState"]
    return state


@in_each_form
async def test_a_client_brings_a_state_back(form: dict[str, Any]) -> None:
    """MRTR-06. Spec 2026-07-28, basic/patterns/mrtr: Input Required Result."""
    params: dict[str, Any] = {"name": "order", "arguments": {"isbn": "1"}}
    state = await state_of(asking(form))
    answered = await call(
        asking(form), "tools/call", by="ada", requestState=state, **params
    )
    assert answered == text("1")


async def test_without_a_principal_whoever_holds_a_state_may_use_it() -> None:
    """MRTR-04."""
    asked = await call(asking({}), "tools/call", name="order")
    answered = await call(
        asking({}), "tools/call", name="order", requestState=asked["requestState"]
    )
    assert answered == text("")


async def refused(app: App, token: object, by: str | None = "ada") -> bytes:
    """Send a state that is refused, and return the body of the response."""
    params: dict[str, Any] = {"name": "order", "arguments": {"isbn": "1"}}
    replied = await reply(app, "tools/call", by=by, requestState=token, **params)
    assert (replied.status, replied.message["error"]) == (
        200,
        {"code": INVALID_PARAMS, "message": "Invalid or expired requestState"},
    )
    return replied.body


@in_each_form
async def test_a_client_is_told_the_same_whatever_is_wrong(
    form: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MRTR-01, MRTR-03, MRTR-06: the same bytes, and the cause in the log."""
    caplog.set_level(logging.INFO)
    app = asking(form)
    state, other = await state_of(app), await state_of(app, isbn="2")
    strange = await state_of(asking(form, STRANGE))
    tampered = [tamper(state, other) for tamper in TAMPERED.values()]
    bodies = [await refused(app, token) for token in [*tampered, other, strange]]
    bodies += [await refused(app, state, by) for by in ("bob", None)]
    later = time.time() + STATE_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    bodies.append(await refused(app, state))
    assert len(set(bodies)) == 1
    lines = [line for line in caplog.messages if "requestState is refused: " in line]
    assert len(lines) == len(bodies)
