"""Sealing: round trips, and every way a token can be wrong."""

import base64
import doctest
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from itsdangerous import URLSafeSerializer, URLSafeTimedSerializer

from mcpkit.protocol import sealing as module
from mcpkit.protocol.sealing import (
    MAX_PAYLOAD_BYTES,
    MAX_TOKEN_BYTES,
    MIN_KEY_BYTES,
    Sealer,
    SealError,
)

KEY, OLD, STRANGE = b"k" * 32, b"o" * 32, b"x" * 32
NOW = 1_000_000.0

TOKENS: list[tuple[str, str, Any, Any]] = [
    # id, purpose, binding, payload: as they are used
    (
        "a session",
        "session",
        ["bookshop", "ada"],
        {"v": "2025-11-25", "c": {"roots": {}}, "i": "Zm9v"},
    ),
    ("a session of nobody", "session", ["bookshop", None], {"v": "2025-11-25"}),
    ("a cursor", "cursor", "tools/list", "add"),
    (
        "the state of a request",
        "state",
        {"method": "tools/call", "name": "book", "arguments": {"seat": "14C"}},
        {"step": 2, "rest": [None, True, 0.5, "世界 \ud800"]},
    ),
    ("nothing", "cursor", None, None),
]
PURPOSE, BINDING, PAYLOAD = "state", {"name": "book", "principal": "ada"}, {"step": 2}


def seal(*keys: bytes, payload: Any = PAYLOAD) -> str:
    return Sealer(keys or [KEY]).seal(PURPOSE, BINDING, payload, now=NOW)


@pytest.mark.parametrize(
    ("purpose", "binding", "payload"),
    [pytest.param(*row, id=name) for name, *row in TOKENS],
)
def test_open_returns_what_was_sealed(purpose: str, binding: Any, payload: Any) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements."""
    sealer = Sealer([KEY])
    token = sealer.seal(purpose, binding, payload, now=NOW)
    assert sealer.open(purpose, binding, token, now=NOW) == payload
    assert sealer.open_dated(purpose, binding, token, now=NOW + 1) == (payload, NOW)


@pytest.mark.parametrize(
    ("purpose", "binding", "payload"),
    [pytest.param(*row, id=name) for name, *row in TOKENS],
)
def test_a_token_fits_a_url_and_a_header(
    purpose: str, binding: Any, payload: Any
) -> None:
    """Spec 2025-11-25, basic/transports: Session Management, visible ASCII."""
    token = Sealer([KEY]).seal(purpose, binding, payload, now=NOW)
    assert set(token) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(JSON_VALUES, JSON_VALUES)
def test_open_undoes_seal(binding: Any, payload: Any) -> None:
    """Ours."""
    sealer = Sealer([KEY])
    token = sealer.seal(PURPOSE, binding, payload, now=NOW)
    assert repr(sealer.open(PURPOSE, binding, token, now=NOW)) == repr(payload)


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=64) | st.text("aA0-_.=", max_size=64) | st.none() | st.integers()
)
def test_nothing_opens_but_what_was_sealed(token: object) -> None:
    """Ours: any text is refused, and none is a crash."""
    assert fault(token) != ""


def fault(token: object, *keys: bytes, binding: Any = BINDING) -> str:
    """Return why a token is refused, for the log."""
    with pytest.raises(SealError) as caught:
        Sealer(keys or [KEY]).open(PURPOSE, binding, token, now=NOW, max_age=600)
    return str(caught.value)


def flipped(token: str, index: int) -> str:
    other = "a" if token[index] != "a" else "b"
    return token[:index] + other + token[index + 1 :]


def forged(claims: dict[str, Any]) -> str:
    """Make a token with the default digest and derivation, of the right key."""
    return str(URLSafeSerializer(KEY, salt=f"mcpkit.{PURPOSE}.v1").dumps(claims))


NEVER = "its signature is wrong"
NO_STRING = "it is not an ASCII string"
TOO_LARGE = r"is too large: its token has \d+ bytes, and may have 65536\Z"

TAMPERED: dict[str, tuple[Callable[[str], object], str]] = {
    "nothing": (lambda _: None, NO_STRING),
    "a number": (lambda _: 7, NO_STRING),
    "a list": (lambda token: [token], NO_STRING),
    "bytes": (lambda token: token.encode(), NO_STRING),
    "what is not ASCII": (lambda token: token + "\u2603", NO_STRING),
    "half a pair of surrogates": (lambda _: "\ud800", NO_STRING),
    "too long": (lambda token: token + "a" * MAX_TOKEN_BYTES, "it is too long"),
    "empty": (lambda _: "", NEVER),
    "a point alone": (lambda _: ".", NEVER),
    "cut short": (lambda token: token[:-2], NEVER),
    "made longer": (lambda token: token + "aaaa", NEVER),
    "its first letter flipped": (lambda token: flipped(token, 0), NEVER),
    "its signature flipped": (
        lambda token: flipped(token, token.rindex(".") + 1),
        NEVER,
    ),
    "its signature dropped": (lambda token: token.rpartition(".")[0], NEVER),
    "its signature empty": (lambda token: token.rpartition(".")[0] + ".", NEVER),
    "its payload dropped": (lambda token: "." + token.rpartition(".")[2], NEVER),
    "another signature": (
        lambda token: (
            token.rpartition(".")[0] + "." + seal(payload=1).rpartition(".")[2]
        ),
        NEVER,
    ),
    "in capitals": (str.upper, NEVER),
    "white space before it": (lambda token: " " + token, NEVER),
    "a line break in it": (lambda token: token[:9] + "\n" + token[9:], NEVER),
    "a zero character after it": (lambda token: token + "\x00", NEVER),
    "sealed by a stranger": (lambda _: seal(STRANGE), NEVER),
    "sealed for another purpose": (
        lambda _: Sealer([KEY]).seal("cursor", BINDING, PAYLOAD, now=NOW),
        NEVER,
    ),
    "signed with the default digest": (
        lambda _: forged({"p": PAYLOAD, "t": NOW, "b": ""}),
        NEVER,
    ),
    "signed by another of the library's classes": (
        lambda _: str(
            URLSafeTimedSerializer(KEY, salt=f"mcpkit.{PURPOSE}.v1").dumps(PAYLOAD)
        ),
        NEVER,
    ),
}


@pytest.mark.parametrize(("tamper", "why"), TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_token_is_refused(tamper: Callable[[str], object], why: str) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements.

    A `requestState` is input of an attacker's; the same holds for cursors and
    sessions. The reason is for the log alone.
    """
    assert fault(tamper(seal())) == why


def test_no_bit_of_a_token_can_be_flipped() -> None:
    """MRTR-01."""
    token = seal()
    flips = [
        token[:index] + chr(ord(letter) ^ 1 << bit) + token[index + 1 :]
        for index, letter in enumerate(token)
        for bit in range(8)
    ]
    assert {fault(flip) for flip in flips} == {NEVER, NO_STRING}


def test_no_part_of_a_token_opens() -> None:
    """MRTR-01."""
    token = seal()
    parts = [token[:length] for length in range(len(token))]
    parts += [token[start:] for start in range(1, len(token))]
    assert {fault(part) for part in parts} == {NEVER}


@pytest.mark.parametrize("more", ["A", "=", ".", "\n", " ", "\x00", "AAAA"])
def test_nothing_can_be_appended_to_a_token(more: str) -> None:
    """MRTR-01."""
    assert (fault(seal() + more), fault(more + seal())) == (NEVER, NEVER)


def test_what_is_too_large_is_not_sealed() -> None:
    """Ours: what would not be opened again."""
    noise = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(2_000))
    with pytest.raises(SealError, match=TOO_LARGE):
        seal(payload=noise)


def test_what_is_large_is_not_sealed_however_well_it_is_compressed() -> None:
    """Ours: a small token would have much read in, as often as it is sent."""
    assert len(seal(payload="a" * (MAX_PAYLOAD_BYTES - 100))) < 1024
    with pytest.raises(SealError, match=f"and may have {MAX_PAYLOAD_BYTES}"):
        seal(payload="a" * MAX_PAYLOAD_BYTES)


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
    ("none of them", [STRANGE], [KEY, OLD], False),
]


@pytest.mark.parametrize(
    ("sealing", "opening", "opens"),
    [pytest.param(*row, id=name) for name, *row in ROTATIONS],
)
def test_the_first_key_seals_and_all_of_them_open(
    sealing: list[bytes], opening: list[bytes], *, opens: bool
) -> None:
    """Ours: keys are rotated by putting the new one in front."""
    token = seal(*sealing)
    if opens:
        assert Sealer(opening).open(PURPOSE, BINDING, token, now=NOW) == PAYLOAD
    else:
        assert fault(token, *opening) == NEVER


ELSEWHERE: list[tuple[str, Any, Any]] = [
    # id, binding at the sealing, binding at the opening
    ("another method", "tools/list", "prompts/list"),
    ("another server", ["bookshop", "ada"], ["library", "ada"]),
    ("another principal", ["bookshop", "ada"], ["bookshop", "bob"]),
    ("nobody, where there was somebody", ["bookshop", "ada"], ["bookshop", None]),
    ("somebody, where there was nobody", ["bookshop", None], ["bookshop", "ada"]),
    ("somebody called None", ["bookshop", None], ["bookshop", "None"]),
    ("nobody, and somebody with no name", ["bookshop", None], ["bookshop", ""]),
    ("the parts the other way round", ["a", "b"], ["b", "a"]),
    ("the parts cut elsewhere", ["ab", "c"], ["a", "bc"]),
    ("one argument changed", {"a": 1, "b": 2}, {"a": 1, "b": 3}),
    ("one argument dropped", {"a": 1, "b": 2}, {"a": 1}),
    ("one argument added", {"a": 1}, {"a": 1, "b": None}),
    ("a number in a string", {"a": 1}, {"a": "1"}),
    ("a boolean for a number", {"a": 1}, {"a": True}),
    ("a fraction for an integer", {"a": 1}, {"a": 1.0}),
    ("a letter that looks the same", "a", "\u0430"),
    ("nothing", "tools/list", None),
    ("the empty string", None, ""),
]


@pytest.mark.parametrize(
    ("sealed", "opened"), [pytest.param(*row, id=name) for name, *row in ELSEWHERE]
)
def test_a_token_is_refused_where_any_binding_differs(sealed: Any, opened: Any) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements; PAG-01."""
    token = Sealer([KEY]).seal(PURPOSE, sealed, PAYLOAD, now=NOW)
    assert fault(token, binding=opened) == "it is bound to something else"


def test_the_order_of_keys_in_a_binding_is_of_no_account() -> None:
    """Ours: a binding is compared as canonical JSON."""
    token = Sealer([KEY]).seal(PURPOSE, {"a": 1, "b": {"c": 1, "d": 2}}, 1, now=NOW)
    binding = {"b": {"d": 2, "c": 1}, "a": 1}
    assert Sealer([KEY]).open(PURPOSE, binding, token, now=NOW) == 1


AGES: list[tuple[str, float, float | None, bool]] = [
    # id, seconds later, how long it is good for, whether it opens
    ("at once", 0, 600, True),
    ("just before the end", 599.999, 600, True),
    ("at the end", 600, 600, False),
    ("after the end", 601, 600, False),
    ("before it was sealed, by a clock that is behind", -5, 600, True),
    ("for no time", 0, 0, False),
    ("with no end", 10**12, None, True),
    ("at no time", math.nan, 600, False),
    ("at the end of time", math.inf, 600, False),
    ("for no known time", 0, math.nan, False),
]


@pytest.mark.parametrize(
    ("later", "max_age", "opens"), [pytest.param(*row, id=name) for name, *row in AGES]
)
def test_a_token_is_good_for_its_time(
    later: float, max_age: float | None, *, opens: bool
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements, a short expiry."""
    sealer = Sealer([KEY])
    if opens:
        opened = sealer.open(PURPOSE, BINDING, seal(), now=NOW + later, max_age=max_age)
        assert opened == PAYLOAD
    else:
        with pytest.raises(SealError, match="it has expired"):
            sealer.open(PURPOSE, BINDING, seal(), now=NOW + later, max_age=max_age)


@pytest.mark.parametrize("sealed_at", [math.nan, -math.inf], ids=repr)
def test_a_token_that_was_sealed_at_no_time_has_expired(sealed_at: float) -> None:
    """Ours: written so that a NaN fails the comparison."""
    token = Sealer([KEY]).seal(PURPOSE, BINDING, PAYLOAD, now=sealed_at)
    assert fault(token) == "it has expired"


def test_a_token_shows_its_holder_no_name() -> None:
    """Ours: what it is bound to travels as a digest under the key."""
    binding = {"name": "book", "principal": "ada", "arguments": {"seat": "14C"}}
    token = Sealer([KEY]).seal(PURPOSE, binding, {"step": 2}, now=NOW)
    payload = token.partition(".")[0]
    shown = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert {**shown, "b": len(shown["b"])} == {"p": {"step": 2}, "t": NOW, "b": 32}


def test_the_digest_of_a_binding_needs_the_key() -> None:
    """Ours: a holder can't guess at names and compare."""

    def digest(key: bytes) -> Any:
        payload = seal(key).partition(".")[0]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))["b"]

    assert digest(KEY) == digest(KEY)
    assert digest(KEY) != digest(OLD)


def test_a_token_is_signed_with_sha_256() -> None:
    """Ours: never with the default digest of itsdangerous, which is SHA-1."""
    signature = seal().rpartition(".")[2]
    assert len(base64.urlsafe_b64decode(signature + "==")) == 32


class Plain:
    """A codec that protects nothing: its tokens are what it carries."""

    def seal(self, data: bytes) -> str:
        """Make a token."""
        return data.decode()

    def open(self, token: str) -> bytes:
        """Read a token."""
        return token.encode()


class Odd:
    """A codec that answers everything with a value, or an exception."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def seal(self, data: bytes) -> Any:  # noqa: ARG002
        """Answer."""
        return self._said()

    def open(self, token: str) -> Any:  # noqa: ARG002
        """Answer."""
        return self._said()

    def _said(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


CARRIED = Sealer([KEY], Plain())


def carried_fault(token: object, sealer: Sealer = CARRIED, **differs: Any) -> str:
    how = {"binding": BINDING, "now": NOW, **differs}
    with pytest.raises(SealError) as caught:
        sealer.open(PURPOSE, how["binding"], token, now=how["now"], max_age=600)
    return str(caught.value)


@pytest.mark.parametrize(
    ("purpose", "binding", "payload"),
    [pytest.param(*row, id=name) for name, *row in TOKENS],
)
def test_a_codec_carries_what_is_sealed(
    purpose: str, binding: Any, payload: Any
) -> None:
    """Ours."""
    token = CARRIED.seal(purpose, binding, payload, now=NOW)
    assert CARRIED.open_dated(purpose, binding, token, now=NOW) == (payload, NOW)


def test_a_codec_is_given_no_name() -> None:
    """Ours: what a token is bound to is a digest there, too."""
    token = CARRIED.seal(PURPOSE, ["tools/call", "ada"], {"step": 2}, now=NOW)
    shown = json.loads(token.rpartition(".")[0])
    assert {**shown, "b": len(shown["b"])} == {"p": {"step": 2}, "t": NOW, "b": 32}


def test_what_a_codec_carries_is_not_compressed() -> None:
    """Ours: the length of what is encrypted tells nothing of what is in it."""
    same, noise = "a" * 64, hashlib.sha256(b"").hexdigest()
    lengths = {
        len(CARRIED.seal(PURPOSE, None, text, now=NOW)) for text in (same, noise)
    }
    assert len(lengths) == 1


def test_what_a_codec_carries_is_signed() -> None:
    """Ours: the payload, the time and the binding hold whatever the codec is."""
    token = CARRIED.seal(PURPOSE, BINDING, PAYLOAD, now=NOW)
    flips = [
        token[:index] + chr(ord(letter) ^ 1 << bit) + token[index + 1 :]
        for index, letter in enumerate(token[:-1])
        for bit in range(7)
    ]
    assert {carried_fault(flip) for flip in flips} == {NEVER}


def test_what_a_codec_carries_is_bound_and_good_for_its_time() -> None:
    """Ours."""
    token = CARRIED.seal(PURPOSE, BINDING, PAYLOAD, now=NOW)
    assert carried_fault(token, binding=[]) == "it is bound to something else"
    assert carried_fault(token, now=NOW + 600) == "it has expired"


NOT_OURS: list[tuple[str, Callable[[], str]]] = [
    # id, what a codec carries
    ("nothing", lambda: ""),
    ("a text", lambda: "step 2"),
    ("JSON without a signature", lambda: '{"p":1,"t":1,"b":""}'),
    ("a token without a codec", seal),
    (
        "what is for another purpose",
        lambda: CARRIED.seal("cursor", BINDING, PAYLOAD, now=NOW),
    ),
    (
        "what a stranger sealed",
        lambda: Sealer([STRANGE], Plain()).seal(PURPOSE, BINDING, PAYLOAD, now=NOW),
    ),
]


@pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, make in NOT_OURS]
)
def test_what_is_not_ours_is_refused_whatever_the_codec_says(
    make: Callable[[], str],
) -> None:
    """Ours."""
    assert carried_fault(make()) == NEVER


def test_a_token_that_was_carried_does_not_open_without_the_codec() -> None:
    """Ours."""
    assert fault(CARRIED.seal(PURPOSE, BINDING, PAYLOAD, now=NOW)) == NEVER


ODD_SEALS: list[tuple[str, Any, str]] = [
    # id, what codec.seal does, what is said
    ("it fails", KeyError("kms"), r"codec\.seal failed: KeyError\('kms'\)\Z"),
    ("bytes", b"token", r"codec\.seal returns an ASCII string, not bytes\Z"),
    ("nothing", None, r"codec\.seal returns an ASCII string, not NoneType\Z"),
    ("beyond ASCII", "t\u00f6ken", r"returns an ASCII string, not other text\Z"),
    ("half a surrogate pair", "\ud800", r"returns an ASCII string, not other text\Z"),
    ("too long", "a" * (MAX_TOKEN_BYTES + 1), TOO_LARGE),
]


@pytest.mark.parametrize(
    ("does", "message"), [pytest.param(*row, id=name) for name, *row in ODD_SEALS]
)
def test_a_codec_that_cannot_seal_is_named(does: Any, message: str) -> None:
    """Ours."""
    with pytest.raises(SealError, match=message):
        Sealer([KEY], Odd(does)).seal(PURPOSE, BINDING, PAYLOAD, now=NOW)


ODD_OPENS: list[tuple[str, Any, str]] = [
    # id, what codec.open does, what is said
    ("it fails", KeyError("kms"), "codec.open failed: KeyError('kms')"),
    ("it refuses", SealError("no such key"), "no such key"),
    ("a text", "token", "codec.open returns bytes, not str"),
    ("nothing", None, "codec.open returns bytes, not NoneType"),
    ("other bytes", b"\xff\x00", NEVER),
]


@pytest.mark.parametrize(
    ("does", "message"), [pytest.param(*row, id=name) for name, *row in ODD_OPENS]
)
def test_a_codec_that_cannot_open_is_a_refusal(does: Any, message: str) -> None:
    """Ours."""
    assert carried_fault("token", Sealer([KEY], Odd(does))) == message


@pytest.mark.parametrize("token", [None, 7, b"token", "t\u00f6ken", "\ud800"], ids=repr)
def test_a_codec_is_given_nothing_but_text(token: object) -> None:
    """MRTR-01."""
    sealer = Sealer([KEY], Odd(NotImplementedError()))
    assert carried_fault(token, sealer) == NO_STRING


def test_a_codec_is_given_nothing_that_is_too_long() -> None:
    """MRTR-01."""
    sealer = Sealer([KEY], Odd(NotImplementedError()))
    assert carried_fault("a" * 2**20, sealer) == "it is too long"


def test_a_token_of_the_greatest_length_is_opened() -> None:
    """Ours: 64 KiB at most."""
    rest = len(CARRIED.seal(PURPOSE, BINDING, "", now=NOW))
    most = "a" * (MAX_TOKEN_BYTES - rest)
    token = CARRIED.seal(PURPOSE, BINDING, most, now=NOW)
    assert CARRIED.open(PURPOSE, BINDING, token, now=NOW) == most
    with pytest.raises(SealError, match=TOO_LARGE):
        CARRIED.seal(PURPOSE, BINDING, most + "a", now=NOW)


BAD_KEYS: list[tuple[str, list[bytes], str]] = [
    # id, keys, what is said
    ("none", [], "at least one key"),
    ("an empty one", [b""], "at least 32 bytes"),
    ("a short one", [b"k" * (MIN_KEY_BYTES - 1)], "at least 32 bytes"),
    ("a short one behind", [KEY, b"k" * 31], "at least 32 bytes"),
]


@pytest.mark.parametrize(
    ("keys", "message"), [pytest.param(*row, id=name) for name, *row in BAD_KEYS]
)
def test_a_key_that_is_too_short_is_refused(keys: list[bytes], message: str) -> None:
    """Ours."""
    with pytest.raises(ValueError, match=message):
        Sealer(keys)


def test_a_refusal_shows_no_key_and_no_token() -> None:
    """Ours: its message may go to a log."""
    token = seal(STRANGE)
    assert not any(secret in fault(token) for secret in (token, "kkkk", "book", "ada"))


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
