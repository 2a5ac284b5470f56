"""Tokens that a client holds for the server: request states, sessions and cursors.

A token is signed, so that a client can neither make nor change one. It is not
secret, unless a codec makes it so: the payload can be read by its holder. What it
is bound to does not travel, save as a digest under the key: a token shows its
holder no name.

What a codec carries is signed before and checked after, with the time and the
binding inside, so that they hold whatever the codec is.

Everything is a function of its arguments: the time, in seconds, is passed in.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from itsdangerous import BadData, Serializer, URLSafeSerializer

from mcpkit.errors import MCPKitError

MIN_KEY_BYTES: Final = 32
"""The length of the shortest key that is taken, in bytes."""

MAX_TOKEN_BYTES: Final = 64 * 1024
"""The length of the longest token that is sealed or opened, in bytes."""

MAX_PAYLOAD_BYTES: Final = 4 * MAX_TOKEN_BYTES
"""How much a token may hold, in bytes of JSON.

What repeats itself is compressed to a thousandth, and whoever has the token can have
it read again and again.
"""

# Not all that itsdangerous reads: it skips what is not of its alphabet, and the two
# bits that the last letter of a signature has to spare. One payload would have any
# number of tokens.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.-]+\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")

_FORGED: Final = "its signature is wrong"


class SealError(MCPKitError):
    """A token can't be sealed or opened.

    The message is for the log, never for a client.
    """


class Codec(Protocol):
    """How tokens travel, where it is not as signed text: encrypted, or by reference."""

    def seal(self, data: bytes) -> str:
        """Return a token for some bytes, in ASCII, of at most 64 KiB."""

    def open(self, token: str) -> bytes:
        """Return the bytes that a token was made of; raise for any other token."""


class Sealer:
    """Seals and opens tokens under a list of keys.

    Args:
        keys: The first seals, and all of them open. Each has at least 32 bytes.
        codec: What carries the signed payload; by default it travels as it is.

    Raises:
        ValueError: There is no key, or one is too short.

    Example:
        >>> sealer = Sealer([b"k" * 32])
        >>> token = sealer.seal("cursor", "tools/list", {"after": "add"}, now=0)
        >>> sealer.open("cursor", "tools/list", token, now=9)
        {'after': 'add'}
    """

    def __init__(self, keys: Sequence[bytes], codec: Codec | None = None) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        if any(len(key) < MIN_KEY_BYTES for key in keys):
            raise ValueError(f"a key needs at least {MIN_KEY_BYTES} bytes")
        self._keys = tuple(keys)
        self._codec = codec
        self._serializers: dict[str, Serializer[str]] = {}

    def seal(self, purpose: str, binding: Any, payload: Any, *, now: float) -> str:
        """Return a token for `payload`, in characters that fit a URL or a header.

        A codec may use all of ASCII.

        Args:
            purpose: What kind of token it is; another kind can't be passed for it.
            binding: What it is tied to. It must be equal when it is opened.
            payload: What the token holds.
            now: The time in seconds.

        Raises:
            SealError: The payload is too large, or the codec failed.
            TypeError: The payload has no JSON form.
        """
        claims = {"p": payload, "t": now, "b": _digest(self._keys[0], binding)}
        token = self._serializer(purpose).dumps(claims)
        if self._codec is not None:
            token = _carried(self._codec, token.encode())
        if len(token) > MAX_TOKEN_BYTES:
            raise SealError(
                f"what is to be kept is too large: its token has {len(token)} bytes, "
                f"and may have {MAX_TOKEN_BYTES}"
            )
        return token

    def open(
        self,
        purpose: str,
        binding: Any,
        token: object,
        *,
        now: float,
        max_age: float | None = None,
    ) -> Any:
        """Return the payload inside a token; `open_dated` has the details."""
        return self.open_dated(purpose, binding, token, now=now, max_age=max_age)[0]

    def open_dated(
        self,
        purpose: str,
        binding: Any,
        token: object,
        *,
        now: float,
        max_age: float | None = None,
    ) -> tuple[Any, float]:
        """Return the payload inside a token, and when it was sealed.

        Args:
            purpose: What kind of token is expected.
            binding: What it must be tied to.
            token: What the client sent.
            now: The time in seconds.
            max_age: Seconds that a token is good for; `None` for ever.

        Raises:
            SealError: For any fault at all.
        """
        signed = self._signed(token)
        try:
            claims: Mapping[str, Any] = self._serializer(purpose).loads(signed)
        except BadData as error:
            raise SealError(_FORGED) from error
        # Written so that a NaN fails the comparison and is refused.
        if max_age is not None and not now < claims["t"] + max_age:
            raise SealError("it has expired")
        digests = [_digest(key, binding) for key in self._keys]
        if not any(hmac.compare_digest(claims["b"], digest) for digest in digests):
            raise SealError("it is bound to something else")
        return claims["p"], claims["t"]

    def _signed(self, token: object) -> str | bytes:
        """Return the signed payload that a token is or carries."""
        if not isinstance(token, str) or not token.isascii():
            raise SealError("it is not an ASCII string")
        if len(token) > MAX_TOKEN_BYTES:
            raise SealError("it is too long")
        if self._codec is not None:
            return _uncovered(self._codec, token)
        if not _TOKEN.fullmatch(token):
            raise SealError(_FORGED)
        return token

    def _serializer(self, purpose: str) -> Serializer[str]:
        if purpose not in self._serializers:
            # Under a codec nothing is compressed: the length of what is encrypted
            # would tell how much of it is like what the client sent.
            kind = URLSafeSerializer if self._codec is None else Serializer[str]
            self._serializers[purpose] = kind(
                # itsdangerous signs with the last key of the list, not the first.
                [*reversed(self._keys)],
                serializer=_JSON,
                salt=f"mcpkit.{purpose}.v1",
                # Half a surrogate pair, which text may hold, has no UTF-8.
                serializer_kwargs={"ensure_ascii": True, "separators": (",", ":")},
                signer_kwargs={
                    "key_derivation": "hmac",
                    "digest_method": hashlib.sha256,  # the default is SHA-1
                },
            )
        return self._serializers[purpose]


class _JSON:
    """JSON of a bounded size."""

    @staticmethod
    def dumps(value: Any, **options: Any) -> str:
        """Encode a value.

        Raises:
            SealError: It is too large.
        """
        encoded = json.dumps(value, **options)
        if len(encoded) > MAX_PAYLOAD_BYTES:
            raise SealError(
                f"what is to be kept is too large: it has {len(encoded)} bytes, and "
                f"may have {MAX_PAYLOAD_BYTES}"
            )
        return encoded

    loads = staticmethod(json.loads)


def _carried(codec: Codec, data: bytes) -> str:
    try:
        token: object = codec.seal(data)
    except Exception as error:
        raise SealError(f"codec.seal failed: {error!r}") from error
    if not isinstance(token, str) or not token.isascii():
        kind = "other text" if isinstance(token, str) else type(token).__name__
        raise SealError(f"codec.seal returns an ASCII string, not {kind}")
    return token


def _uncovered(codec: Codec, token: str) -> bytes:
    try:
        data: object = codec.open(token)
    except SealError:
        raise
    except Exception as error:
        raise SealError(f"codec.open failed: {error!r}") from error
    if not isinstance(data, bytes):
        raise SealError(f"codec.open returns bytes, not {type(data).__name__}")
    return data


def _digest(key: bytes, binding: Any) -> str:
    canonical = json.dumps(binding, sort_keys=True, separators=(",", ":"))
    derived = hmac.digest(key, b"mcpkit.binding.v1", "sha256")
    return hmac.digest(derived, canonical.encode(), "sha256")[:16].hex()
