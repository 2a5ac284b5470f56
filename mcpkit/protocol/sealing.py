"""Tokens that a client holds for the server: sessions and cursors.

A token is signed, so that a client can neither make nor change one. It is not
secret: the payload can be read by its holder. What it is bound to does not
travel, save as a digest under the key: a token shows its holder no name.

Everything is a function of its arguments: the time, in seconds, is passed in.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from itsdangerous import BadData, URLSafeSerializer

from mcpkit.errors import MCPKitError

MIN_KEY_BYTES: Final = 32
"""The length of the shortest key that is taken, in bytes."""

MAX_TOKEN_BYTES: Final = 64 * 1024
"""The length of the longest token that is opened, in bytes."""


_TOKEN: Final = re.compile(r"[A-Za-z0-9_.-]+\Z")


class SealError(MCPKitError):
    """A token can't be opened. The message is for the log, never for a client."""


class Sealer:
    """Seals and opens tokens under a list of keys.

    Args:
        keys: The first seals, and all of them open. Each has at least 32 bytes.

    Raises:
        ValueError: There is no key, or one is too short.

    Example:
        >>> sealer = Sealer([b"k" * 32])
        >>> token = sealer.seal("cursor", "tools/list", {"after": "add"}, now=0)
        >>> sealer.open("cursor", "tools/list", token, now=9)
        {'after': 'add'}
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        if any(len(key) < MIN_KEY_BYTES for key in keys):
            raise ValueError(f"a key needs at least {MIN_KEY_BYTES} bytes")
        self._keys = tuple(keys)
        self._serializers: dict[str, URLSafeSerializer] = {}

    def seal(self, purpose: str, binding: Any, payload: Any, *, now: float) -> str:
        """Return a token for `payload`, in characters that fit a URL or a header.

        Args:
            purpose: What kind of token it is; another kind can't be passed for it.
            binding: What it is tied to. It must be equal when it is opened.
            payload: What the token holds.
            now: The time in seconds.
        """
        claims = {"p": payload, "t": now, "b": _digest(self._keys[0], binding)}
        token: str | bytes = self._serializer(purpose).dumps(claims)
        return token if isinstance(token, str) else token.decode("ascii")

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
        if not isinstance(token, str) or not token.isascii():
            raise SealError("it is not an ASCII string")
        if len(token) > MAX_TOKEN_BYTES:
            raise SealError("it is too long")
        # itsdangerous skips what is not of its alphabet, so that one payload would
        # have any number of tokens.
        if not _TOKEN.match(token):
            raise SealError("its signature is wrong")
        try:
            claims: Mapping[str, Any] = self._serializer(purpose).loads(token)
        except BadData as error:
            raise SealError("its signature is wrong") from error
        # Written so that a NaN fails the comparison and is refused.
        if max_age is not None and not now < claims["t"] + max_age:
            raise SealError("it has expired")
        digests = [_digest(key, binding) for key in self._keys]
        if not any(hmac.compare_digest(claims["b"], digest) for digest in digests):
            raise SealError("it is bound to something else")
        return claims["p"], claims["t"]

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        if purpose not in self._serializers:
            self._serializers[purpose] = URLSafeSerializer(
                # itsdangerous signs with the last key of the list, not the first.
                [*reversed(self._keys)],
                salt=f"mcpkit.{purpose}.v1",
                # Half a surrogate pair, which text may hold, has no UTF-8.
                serializer_kwargs={"ensure_ascii": True},
                signer_kwargs={
                    "key_derivation": "hmac",
                    "digest_method": hashlib.sha256,  # the default is SHA-1
                },
            )
        return self._serializers[purpose]


def _digest(key: bytes, binding: Any) -> str:
    canonical = json.dumps(binding, sort_keys=True, separators=(",", ":"))
    derived = hmac.digest(key, b"mcpkit.binding.v1", "sha256")
    return hmac.digest(derived, canonical.encode(), "sha256")[:16].hex()
