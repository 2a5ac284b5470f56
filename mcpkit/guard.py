"""Who may speak to us, and in what form: Host, Origin, content types, size.

The checks see headers as ASGI has them, and remember their verdicts: clients
send the same few values over and over.

Spec 2026-07-28, basic/transports/streamable-http: Security & Endpoint.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mcpkit.errors import SetupError

LOCALHOST: Final = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that are admitted unless `App(allowed_hosts=...)` says otherwise."""

_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[^\[\]:/?#@\\,\s]+)(:(?P<port>[0-9]{1,5}))?\Z"
)
_OPTIONAL_WHITE_SPACE: Final = " \t"
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_REMEMBERED: Final = 512
"""How many values of a header are remembered, with the verdict on them."""

_MAX_LENGTH: Final = 512
"""The length of the longest header that is looked at, in bytes."""


@dataclass(frozen=True, slots=True)
class _Host:
    name: str
    port: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    port: str | None
    any_port: bool
    scheme: str | None = None

    def admits(self, host: _Host, scheme: str | None = None) -> bool:
        """Whether a host, or an origin with this scheme, is the one of the entry."""
        if self.scheme != scheme or not (self.any_port or self.port == host.port):
            return False
        if self.name.startswith("*."):
            return host.name.endswith(self.name[1:])
        return self.name == host.name


class Guard:
    """Decides on the Host and the Origin of a request.

    Args:
        allowed_hosts: Names such as `mcp.example.com`, `*.example.com` or
            `localhost:8000`; `*` admits every host.
        allowed_origins: Origins such as `https://app.example.com` or
            `http://localhost:*`; `*` admits every origin.

    Raises:
        SetupError: An entry is malformed.
    """

    def __init__(
        self,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
    ) -> None:
        if isinstance(allowed_hosts, str) or isinstance(allowed_origins, str):
            raise SetupError(
                "allowed_hosts and allowed_origins are lists: write ['example.com']"
            )
        hosts = LOCALHOST if allowed_hosts is None else allowed_hosts
        origins = () if allowed_origins is None else allowed_origins
        self._any_host = "*" in hosts
        self._any_origin = "*" in origins
        self._hosts = [_read_entry(host) for host in hosts if host != "*"]
        self._origins = [_read_origin_entry(item) for item in origins if item != "*"]
        self._local_origins = allowed_origins is None
        self._known_host = lru_cache(_REMEMBERED)(self._admits_host)
        self._known_origin = lru_cache(_REMEMBERED)(self._admits_origin)

    def admits_host(self, header: bytes | None) -> bool:
        """Whether the value of a Host header is admitted."""
        if header is not None and len(header) > _MAX_LENGTH:
            return False
        return self._known_host(header)

    def admits_origin(self, header: bytes, host: bytes | None) -> bool:
        """Whether the value of an Origin header is admitted.

        A page of an admitted host may call that host. With `*` for the hosts
        that says nothing, so that the origin must be listed.
        """
        return len(header) <= _MAX_LENGTH and self._known_origin(header, host)

    def _admits_host(self, header: bytes | None) -> bool:
        if self._any_host:
            return True
        host = None if header is None else _read_host(_text(header))
        return host is not None and any(entry.admits(host) for entry in self._hosts)

    def _admits_origin(self, header: bytes, host: bytes | None) -> bool:
        if self._any_origin:
            return True
        origin = _read_origin(_text(header))
        if origin is None:
            return False
        scheme, authority = origin
        if any(entry.admits(authority, scheme) for entry in self._origins):
            return True
        if self._local_origins and authority.name in LOCALHOST:
            return True
        same = None if host is None else _read_host(_text(host))
        return not self._any_host and authority == same


def _read_host(text: str) -> _Host | None:
    match = _AUTHORITY.match(text.lower())
    if match is None:
        return None
    # A name may end in the dot of the root.
    return _Host(match["host"].removesuffix("."), match["port"])


def _read_entry(text: str) -> _Entry:
    host = _read_host(text.removeprefix("*.").removesuffix(":*"))
    if host is None:
        raise SetupError(
            f"allowed_hosts: {text!r} is no host; write 'mcp.example.com', "
            "'*.example.com' or 'localhost:8000'"
        )
    name = f"*.{host.name}" if text.startswith("*.") else host.name
    return _Entry(name, host.port, any_port=host.port is None)


def _read_origin(text: str) -> tuple[str, _Host] | None:
    scheme, _, authority = text.lower().partition("://")
    host = _read_host(authority)
    if scheme not in _DEFAULT_PORTS or host is None:
        return None
    # Browsers leave out the port that the scheme implies.
    port = None if host.port == _DEFAULT_PORTS[scheme] else host.port
    return scheme, _Host(host.name, port)


def _text(header: bytes) -> str:
    return header.decode("latin-1").strip(_OPTIONAL_WHITE_SPACE)


def _read_origin_entry(text: str) -> _Entry:
    origin = _read_origin(text.removesuffix(":*").rstrip("/"))
    if origin is None:
        raise SetupError(
            f"allowed_origins: {text!r} is no origin; write "
            "'https://app.example.com' or 'http://localhost:*'"
        )
    scheme, host = origin
    return _Entry(host.name, host.port, any_port=text.endswith(":*"), scheme=scheme)


def form_fault(
    content_type: bytes | None, encoding: bytes | None, accept: bytes | None
) -> tuple[int, str] | None:
    """Return what is wrong with the form of a POST: a status and a message."""
    if accept is not None and len(accept) > _MAX_LENGTH:
        return 406, "Accept is too long"
    if len(content_type or b"") + len(encoding or b"") > _MAX_LENGTH:
        return 415, "Content-Type is too long"
    return _known_fault(content_type, encoding, accept)


@lru_cache(_REMEMBERED)
def _known_fault(
    content_type: bytes | None, encoding: bytes | None, accept: bytes | None
) -> tuple[int, str] | None:
    if not is_json(content_type):
        return 415, "Content-Type must be application/json"
    if encoding is not None and encoding.strip().lower() != b"identity":
        return 415, "Content-Encoding must be identity"
    if not accepts(accept, b"application/json"):
        return 406, "Accept must admit application/json"
    return None


def is_json(content_type: bytes | None) -> bool:
    """Whether a Content-Type is JSON, with any parameters."""
    if content_type is None:
        return False
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def accepts(accept: bytes | None, media_type: bytes) -> bool:
    """Whether an Accept header admits a media type. None at all admits everything.

    Of the ranges that match, the most specific decides. RFC 9110, section 12.5.1.

    Example:
        >>> accepts(b"text/*;q=0.5, application/json;q=0", b"application/json")
        False
    """
    if accept is None:
        return True
    main = media_type.partition(b"/")[0]
    verdicts = {}
    for item in accept.lower().split(b","):
        name, *parameters = [part.strip() for part in item.split(b";")]
        verdicts[name] = not any(_is_zero(parameter) for parameter in parameters)
    for pattern in (media_type, main + b"/*", b"*/*"):
        if pattern in verdicts:
            return verdicts[pattern]
    return False


def _is_zero(parameter: bytes) -> bool:
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and bool(re.fullmatch(rb"0(\.0{0,3})?", value.strip()))
