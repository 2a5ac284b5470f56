"""Encrypted tokens: round trips, and every way a token can be wrong."""

import base64
import doctest
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mcpkit import crypto as module
from mcpkit.crypto import Cipher
from mcpkit.protocol.sealing import MAX_TOKEN_BYTES, Sealer, SealError

ROOT = Path(__file__).parent.parent
KEY, OLD, STRANGE = b"k" * 32, b"o" * 32, b"x" * 32
PURPOSE = "request-state"
DATA = b'{"step":2}'

ID, NONCE, TAG = 8, 12, 16

MALFORMED = "it is no encrypted token"
UNKNOWN = "it was encrypted under another key"
CHANGED = "it was changed after it was encrypted"


def sealed(*keys: bytes, data: bytes = DATA, purpose: str = PURPOSE) -> str:
    return Cipher(keys or [KEY], purpose).seal(data)


def fault(token: str, *keys: bytes) -> str:
    """Return why a token is refused, for the log."""
    with pytest.raises(SealError) as caught:
        Cipher(keys or [KEY], PURPOSE).open(token)
    return str(caught.value)


def raw(token: str) -> bytes:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_open_undoes_seal(data: bytes) -> None:
    """Ours."""
    assert Cipher([KEY], PURPOSE).open(sealed(data=data)) == data


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_a_token_fits_a_url_and_a_header(data: bytes) -> None:
    """Ours."""
    assert set(sealed(data=data)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80) | st.text("aA0-_=", max_size=80))
def test_nothing_opens_but_what_was_sealed(token: str) -> None:
    """Ours: any text is refused, and none is a crash."""
    assert fault(token) in (MALFORMED, UNKNOWN)


def test_what_was_sealed_before_opens() -> None:
    """Ours: the form of a token is the same in every release."""
    sealed_by_0_1 = "6ao8TAdKgZQJji9jxJ8tXpcT4ZA_cF7ny-k8X6MmJFcMRAu02WYd2CsbEteGMQ"
    assert Cipher([KEY], PURPOSE).open(sealed_by_0_1) == DATA


def test_every_token_has_a_nonce_of_its_own() -> None:
    """Ours: two with one nonce would give away the key that authenticates."""
    tokens = [raw(sealed()) for _ in range(1_000)]
    assert len({token[ID : ID + NONCE] for token in tokens}) == 1_000
    assert {len(token) for token in tokens} == {ID + NONCE + len(DATA) + TAG}


def test_a_token_shows_neither_what_is_in_it_nor_the_key() -> None:
    """MRTR-07."""
    secret = b"sk-live-1234567890"
    token = sealed(data=secret)
    shown = [token.encode(), raw(token)]
    assert not any(hidden in text for hidden in (secret, KEY) for text in shown)


def test_the_derived_keys_of_two_purposes_differ() -> None:
    """Ours: what shows the id of one tells nothing of the other."""
    ids = {raw(sealed(purpose=purpose))[:ID] for purpose in (PURPOSE, "cursor")}
    assert len(ids) == 2


def test_no_bit_of_a_token_can_be_flipped() -> None:
    """MRTR-01."""
    token = sealed()
    flips = [
        token[:index] + chr(ord(letter) ^ 1 << bit) + token[index + 1 :]
        for index, letter in enumerate(token)
        for bit in range(8)
    ]
    assert {fault(flip) for flip in flips} == {MALFORMED, UNKNOWN, CHANGED}


def test_no_bit_of_what_a_token_holds_can_be_flipped() -> None:
    """MRTR-01: the id of the key, the nonce, the ciphertext, the tag."""
    held = raw(sealed())
    faults = [
        fault(
            text(
                bytes(
                    byte ^ (1 << bit) if at == index else byte
                    for at, byte in enumerate(held)
                )
            )
        )
        for index in range(len(held))
        for bit in range(8)
    ]
    assert faults == [UNKNOWN] * 8 * ID + [CHANGED] * 8 * (len(held) - ID)


def test_no_part_of_a_token_opens() -> None:
    """MRTR-01."""
    token = sealed()
    parts = [token[:length] for length in range(len(token))]
    parts += [token[start:] for start in range(1, len(token))]
    assert {fault(part) for part in parts} == {MALFORMED, UNKNOWN, CHANGED}


def swapped(token: str) -> str:
    """Put the nonce of another token into one."""
    other = raw(sealed())
    return text(raw(token)[:ID] + other[ID : ID + NONCE] + raw(token)[ID + NONCE :])


def under_another_id(token: str) -> str:
    """Say of a token that it is of another key, which opens too."""
    return text(raw(sealed(OLD))[:ID] + raw(token)[ID:])


TAMPERED: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda _: "", MALFORMED),
    "an id alone": (lambda token: text(raw(token)[:ID]), MALFORMED),
    "no tag": (lambda token: text(raw(token)[: ID + NONCE]), MALFORMED),
    "a letter more": (lambda token: token + "A", CHANGED),
    "a byte more": (lambda token: text(raw(token) + b"\x00"), CHANGED),
    "padding": (lambda token: token + "==", MALFORMED),
    "a line break": (lambda token: token + "\n", MALFORMED),
    "white space in it": (lambda token: f"{token[:9]} {token[9:]}", MALFORMED),
    "the other alphabet": (lambda _: text(b"\xff" * 45).replace("_", "/"), MALFORMED),
    "beyond ASCII": (lambda token: token + "\u2603", MALFORMED),
    "half a surrogate pair": (lambda token: token + "\ud800", MALFORMED),
    "the nonce of another": (swapped, CHANGED),
    "the id of another key": (under_another_id, CHANGED),
    "of another key": (lambda _: sealed(STRANGE), UNKNOWN),
    "of another purpose": (lambda _: sealed(purpose="cursor"), UNKNOWN),
    "a signed one": (lambda _: Sealer([KEY]).seal(PURPOSE, 1, 2, now=0), MALFORMED),
}


@pytest.mark.parametrize(("tamper", "why"), TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_token_is_refused(tamper: Callable[[str], str], why: str) -> None:
    """MRTR-01. Spec 2026-07-28, basic/patterns/mrtr: Server Requirements."""
    assert fault(tamper(sealed()), KEY, OLD) == why


ROTATIONS: list[tuple[str, list[bytes], list[bytes], bool]] = [
    # id, keys that seal, keys that open, whether they do
    ("the same key", [KEY], [KEY], True),
    ("a new key in front", [OLD], [KEY, OLD], True),
    ("a new key behind, not in use yet", [KEY], [KEY, OLD], True),
    ("a worker that has the next key already", [KEY, OLD], [OLD, KEY], True),
    ("the first key seals", [KEY, OLD], [KEY], True),
    ("the others do not", [KEY, OLD], [OLD], False),
    ("a key that was dropped", [OLD], [KEY], False),
    ("one of three", [OLD], [KEY, STRANGE, OLD], True),
    ("the same key twice", [KEY], [KEY, KEY], True),
]


@pytest.mark.parametrize(
    ("sealing", "opening", "opens"),
    [pytest.param(*row, id=name) for name, *row in ROTATIONS],
)
def test_the_first_key_seals_and_all_of_them_open(
    sealing: list[bytes], opening: list[bytes], *, opens: bool
) -> None:
    """MRTR-06."""
    token = sealed(*sealing)
    if opens:
        assert Cipher(opening, PURPOSE).open(token) == DATA
    else:
        assert fault(token, *opening) == UNKNOWN


def test_it_carries_what_a_sealer_seals() -> None:
    """Ours: the longest that fits, and no more."""
    sealer = Sealer([KEY], Cipher([KEY], PURPOSE))
    rest = len(raw(sealer.seal(PURPOSE, None, "", now=0)))
    most = "a" * (MAX_TOKEN_BYTES * 3 // 4 - rest)
    token = sealer.seal(PURPOSE, None, most, now=0)
    assert len(token) == MAX_TOKEN_BYTES
    assert sealer.open(PURPOSE, None, token, now=0) == most
    with pytest.raises(SealError, match="is too large"):
        sealer.seal(PURPOSE, None, most + "a", now=0)


def test_a_refusal_shows_no_key_and_no_token() -> None:
    """Ours: its message may go to a log."""
    token = sealed(STRANGE)
    assert not any(secret in fault(token) for secret in (token, "kkkk", "xxxx"))


IMPORTS = """
import sys
from mcpkit import App
App("tests", secret_key="k" * 32).seal_state([], "")
print("cryptography" in sys.modules)
App("tests", secret_key="k" * 32, encrypt=True)
print("cryptography" in sys.modules)
"""


def test_the_library_is_loaded_for_those_who_encrypt_alone() -> None:
    """Ours: it loads slowly, and may be missing."""
    done = subprocess.run(  # noqa: S603  # the arguments are ours
        [sys.executable, "-c", IMPORTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
