"""Tokens that their holder can't read: a codec that encrypts.

It is AES-256-GCM, in URL-safe base64 without padding:

    which key (8 bytes) | nonce (12 bytes) | ciphertext | tag (16 bytes)

Which key it was, and what the token is for, are authenticated with it.

A nonce is drawn for every token. That is safe for 2**32 tokens under a key; for
more, the key is changed.

It needs the library cryptography, `pip install 'mcpkit[crypto]'`, and so is loaded
only where something is encrypted.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcpkit.protocol.sealing import SealError

_ID: Final = 8
_NONCE: Final = 12
_TAG: Final = 16


class Cipher:
    """Encrypts and decrypts under a list of keys, for one purpose.

    Args:
        keys: The first encrypts, and all of them decrypt. From each, a key of the
            purpose's own is derived.
        purpose: What the tokens are for; those for another purpose do not open.

    Example:
        >>> cipher = Cipher([b"k" * 32], "request-state")
        >>> cipher.open(cipher.seal(b"step 2"))
        b'step 2'
    """

    def __init__(self, keys: Sequence[bytes], purpose: str) -> None:
        self._purpose = f"mcpkit.cipher.v1:{purpose}".encode()
        derived = [hmac.digest(key, self._purpose, "sha256") for key in keys]
        self._ciphers = {_identify(key): AESGCM(key) for key in derived}
        self._first = _identify(derived[0])

    def seal(self, data: bytes) -> str:
        """Return a token for some bytes, another one every time."""
        nonce = secrets.token_bytes(_NONCE)
        ciphertext = self._ciphers[self._first].encrypt(
            nonce, data, self._purpose + self._first
        )
        return _encode(self._first + nonce + ciphertext)

    def open(self, token: str) -> bytes:
        """Return the bytes that were sealed.

        Raises:
            SealError: For any fault at all.
        """
        raw = _decode(token)
        key, nonce, ciphertext = raw[:_ID], raw[_ID:][:_NONCE], raw[_ID + _NONCE :]
        if len(ciphertext) < _TAG:
            raise SealError("it is no encrypted token")
        cipher = self._ciphers.get(key)
        if cipher is None:
            raise SealError("it was encrypted under another key")
        try:
            return cipher.decrypt(nonce, ciphertext, self._purpose + key)
        except InvalidTag as error:
            raise SealError("it was changed after it was encrypted") from error


def _identify(key: bytes) -> bytes:
    """Return what a token says of its key, from which the key can't be told."""
    return hmac.digest(key, b"mcpkit.cipher.v1.id", "sha256")[:_ID]


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(token: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise SealError("it is no encrypted token") from error
    # Base64 is read with bits to spare and with what is not of its alphabet: one
    # ciphertext would have any number of tokens.
    if _encode(raw) != token:
        raise SealError("it is no encrypted token")
    return raw
