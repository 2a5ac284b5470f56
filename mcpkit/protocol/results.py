"""The neutral result: what a handler or a method made of a request.

It says nothing of JSON-RPC or of a revision; `modern` and `legacy` alone turn it
into a response. A handler may return one for full control, and anything else it
returns becomes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from mcpkit.errors import ProtocolError
from mcpkit.protocol.content import (
    BinaryData,
    Block,
    Message,
    as_block,
    as_blocks,
    as_contents,
    without_none,
)
from mcpkit.protocol.jsonrpc import Encoded, encode_value

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    T = TypeVarWithDefault("T", default=Any)
else:
    T = TypeVar("T")

V = TypeVar("V")

Kind: TypeAlias = Literal[
    "text",
    "structured",
    "resource",
    "error",
    "raw",
    "wire",
    "tools",
    "resources",
    "resource_templates",
    "resource_read",
    "prompts",
    "prompt_get",
    "completion",
    "subscription",
    "input_required",
    "task",
]
CacheScope: TypeAlias = Literal["private", "public"]

Content: TypeAlias = (
    str | Block | Mapping[str, Any] | Sequence[str | Block | Mapping[str, Any]]
)
"""What the content of a tool's result is made of."""

Contents: TypeAlias = Mapping[str, Any] | Block | str | BinaryData | PurePath
"""What the contents of a resource are made of."""

MAX_COMPLETIONS = 100
"""How many values a completion may have. Spec: server/utilities/completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """How long a client may keep a result, and who may share it.

    Args:
        ttl_ms: Milliseconds, zero or more.
        scope: "public" when the result is the same for every caller.

    Raises:
        ValueError: An argument is out of its range.
    """

    ttl_ms: int
    scope: CacheScope

    def __post_init__(self) -> None:
        if type(self.ttl_ms) is not int or self.ttl_ms < 0:
            raise ValueError(
                f"ttl_ms is an integer of zero or more, not {self.ttl_ms!r}"
            )
        if self.scope not in ("private", "public"):
            raise ValueError(f'scope is "private" or "public", not {self.scope!r}')


# Not frozen: one is made for each request, and freezing triples what that costs.
@dataclass(slots=True, kw_only=True)
class Result(Generic[T]):
    """What a handler or a method made of a request, made by one of the builders.

    The builders take `metadata`, which is added to the result's `_meta`, and
    those of cacheable results `ttl_ms` and `cache_scope`, which override the
    defaults of the app and of the resource for this one response.

    A tool that is annotated with `Result[T]` declares what `T` does, and may
    return a `T` or a result that holds one.

    Attributes:
        kind: Which builder made it.
        value: What it holds, in the form that its kind has.
        metadata: Members of the result's `_meta`.
        ttl_ms: Milliseconds the client may keep it; `None` for the default.
        cache_scope: Who may share it; `None` for the default.
        cause: The exception behind an `error`, for the log. Never sent.
        object_schema: Whether the output schema of the tool describes an
            object; `None` where there is no schema.
    """

    kind: Kind
    value: Any
    metadata: Mapping[str, Any] | None = None
    ttl_ms: int | None = None
    cache_scope: CacheScope | None = None
    cause: BaseException | None = None
    object_schema: bool | None = None

    @classmethod
    def text(
        cls, text: str, *, metadata: Mapping[str, Any] | None = None
    ) -> "Result[Any]":
        """A tool's result of one text.

        Example:
            >>> Result.text("3").members()
            {'content': [{'type': 'text', 'text': '3'}], 'isError': False}
        """
        return cls(kind="text", value=text, metadata=metadata)

    @classmethod
    def structured(
        cls,
        value: V,
        *,
        content: Content | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Result[V]":
        """A tool's result of structured content.

        Args:
            value: Anything with a JSON form.
            content: What the model reads. By default the JSON of the value, as a
                text.
            metadata: Members of the result's `_meta`.
        """
        if content is None:
            return Result(kind="structured", value=value, metadata=metadata)
        held = {"content": as_blocks(content), "structuredContent": value}
        return Result(kind="raw", value=held, metadata=metadata)

    @classmethod
    def content(
        cls, blocks: Content, *, metadata: Mapping[str, Any] | None = None
    ) -> "Result[Any]":
        """A tool's result of one content block, or a list of them."""
        return cls(kind="resource", value=as_blocks(blocks), metadata=metadata)

    @classmethod
    def resource(
        cls, blocks: Content, *, metadata: Mapping[str, Any] | None = None
    ) -> "Result[Any]":
        """The same as `content`, under the name that its kind has."""
        return cls.content(blocks, metadata=metadata)

    @classmethod
    def error(
        cls,
        message: Content,
        *,
        cause: BaseException | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Result[Any]":
        """A tool's result that reports a failure, as `isError`.

        Args:
            message: What the model reads, a text as a rule.
            cause: The exception behind it, for the log. Never sent.
            metadata: Members of the result's `_meta`.
        """
        return cls(kind="error", value=message, cause=cause, metadata=metadata)

    @classmethod
    def raw(
        cls, value: Mapping[str, Any], *, metadata: Mapping[str, Any] | None = None
    ) -> "Result[Any]":
        """A tool's result in wire form; `content` and `isError` have defaults."""
        content = value.get("content")
        if isinstance(content, (list, tuple)):
            blocks = [
                item.wire() if isinstance(item, Block) else item for item in content
            ]
            value = {**value, "content": blocks}
        return cls(kind="raw", value=value, metadata=metadata)

    @classmethod
    def wire(
        cls, value: Mapping[str, Any], *, metadata: Mapping[str, Any] | None = None
    ) -> "Result[Any]":
        """A result that has its shape already; only the era's marks are added.

        A `resultType` of its own is kept, for the results of extensions.
        """
        return cls(kind="wire", value=value, metadata=metadata)

    @classmethod
    def tools(
        cls, definitions: Sequence[Mapping[str, Any]], next_cursor: str | None = None
    ) -> "Result[Any]":
        """The answer to `tools/list`."""
        return cls(kind="tools", value=_page("tools", definitions, next_cursor))

    @classmethod
    def resources(
        cls, definitions: Sequence[Mapping[str, Any]], next_cursor: str | None = None
    ) -> "Result[Any]":
        """The answer to `resources/list`."""
        page = _page("resources", definitions, next_cursor)
        return cls(kind="resources", value=page)

    @classmethod
    def resource_templates(
        cls, definitions: Sequence[Mapping[str, Any]], next_cursor: str | None = None
    ) -> "Result[Any]":
        """The answer to `resources/templates/list`."""
        page = _page("resourceTemplates", definitions, next_cursor)
        return cls(kind="resource_templates", value=page)

    @classmethod
    def prompts(
        cls, definitions: Sequence[Mapping[str, Any]], next_cursor: str | None = None
    ) -> "Result[Any]":
        """The answer to `prompts/list`."""
        return cls(kind="prompts", value=_page("prompts", definitions, next_cursor))

    @classmethod
    def resource_read(
        cls,
        contents: Contents | Sequence[Contents],
        *,
        metadata: Mapping[str, Any] | None = None,
        ttl_ms: int | None = None,
        cache_scope: CacheScope | None = None,
    ) -> "Result[Any]":
        """The contents of a resource, one element or a list of them.

        Args:
            contents: A `File`; a text, bytes, another block or a `Path`, which
                have the URI that was read; or what `resource_contents` builds.
            metadata: Members of the result's `_meta`.
            ttl_ms: Milliseconds the client may keep it.
            cache_scope: Who may share it.
        """
        several = list(contents) if isinstance(contents, (list, tuple)) else [contents]
        return cls(
            kind="resource_read",
            value={"contents": several},
            metadata=metadata,
            ttl_ms=ttl_ms,
            cache_scope=cache_scope,
        )

    @classmethod
    def prompt_get(
        cls,
        messages: str | Message | Mapping[str, Any] | Sequence[Any],
        *,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Result[Any]":
        """The messages of a prompt, one or a list of them.

        A text stands for a message of the user.
        """
        if isinstance(messages, (str, Message, Mapping)):
            messages = [messages]
        value = without_none(
            {
                "description": description,
                "messages": [
                    wired for message in messages for wired in _messages(message)
                ],
            }
        )
        return cls(kind="prompt_get", value=value, metadata=metadata)

    @classmethod
    def completion(
        cls,
        values: Sequence[str],
        *,
        total: int | None = None,
        has_more: bool | None = None,
    ) -> "Result[Any]":
        """Suggestions for an argument, the most relevant first.

        Args:
            values: The suggestions, of which the first 100 are sent.
            total: How many there are in all, when that is known.
            has_more: Whether there are more than are sent.

        Example:
            >>> Result.completion(["python", "pytorch"], total=10).value["completion"]
            {'values': ['python', 'pytorch'], 'total': 10}
        """
        if len(values) > MAX_COMPLETIONS:
            has_more = True
            total = len(values) if total is None else total
        sent = {
            "values": list(values[:MAX_COMPLETIONS]),
            "total": total,
            "hasMore": has_more,
        }
        return cls(kind="completion", value={"completion": without_none(sent)})

    @classmethod
    def subscription(cls, metadata: Mapping[str, Any]) -> "Result[Any]":
        """The end of a stream of notifications."""
        return cls(kind="subscription", value={}, metadata=metadata)

    @classmethod
    def input_required(
        cls,
        input_requests: Mapping[str, Any] | None = None,
        request_state: Any = None,
    ) -> "Result[Any]":
        """A question to the client, which may retry the request with an answer.

        Args:
            input_requests: Input requests by key, each a `method` and `params`, or
                one of the questions that `ctx.ask` takes.
            request_state: What the retry brings back, any JSON value: it travels
                sealed.

        Raises:
            ValueError: Neither is given.
        """
        if input_requests is None and request_state is None:
            raise ValueError("give input_requests, request_state, or both")
        if input_requests is not None and not isinstance(input_requests, Mapping):
            raise ValueError(f"input_requests is a dict, not {input_requests!r}")
        value = {"inputRequests": input_requests, "requestState": request_state}
        return cls(kind="input_required", value=without_none(value))

    @classmethod
    def task(cls, task: Mapping[str, Any]) -> "Result[Any]":
        """A task that was created in place of an answer, in its wire form."""
        return cls(kind="task", value=task)

    @property
    def is_error(self) -> bool:
        """Whether it is of a tool that failed, for the model to read."""
        if self.kind in ("raw", "wire"):
            return self.value.get("isError") is True
        return self.kind == "error"

    def members(self) -> dict[str, Any]:
        """Return the members of the result that no revision adds or drops.

        Members that are encoded already stay `Encoded`.

        Raises:
            ValueError: A structured value has no JSON form.
        """
        match self.kind:
            case "text":
                return _tool_result([{"type": "text", "text": self.value}])
            case "structured":
                encoded = self.value
                if not isinstance(encoded, Encoded):
                    encoded = Encoded(encode_value(encoded))
                content = [{"type": "text", "text": encoded.decode()}]
                return {
                    "content": content,
                    "structuredContent": encoded,
                    "isError": False,
                }
            case "resource":
                return _tool_result(self.value)
            case "error":
                return _tool_result(as_blocks(self.value), failed=True)
            case "resource_read":
                contents = self.value["contents"]
                return {"contents": [as_contents(item) for item in contents]}
            case "raw":
                return {"content": [], "isError": False, **self.value}
            case _:
                return dict(self.value)


Outcome: TypeAlias = Result | ProtocolError
"""What came of a request: a result, or the error it fails with."""


def normalize(value: Any) -> Result:
    """Make a result of what a tool returned.

    A `Result` stays as it is, a string becomes a text, a content block and a list
    with one in it content, `None` empty content, and anything else structured
    content. What is no content in a list that has some becomes a text.

    Example:
        >>> normalize("3").kind, normalize(3).kind, normalize(None).members()
        ('text', 'structured', {'content': [], 'isError': False})
    """
    match value:
        case Result():
            return value
        case str():
            return Result.text(value)
        case None:
            return Result.content([])
        case Block():
            return Result.content(value)
        case list() | tuple() if any(isinstance(item, Block) for item in value):
            return Result.content(
                [_as_content(item) for item in value if item is not None]
            )
        case _:
            return Result.structured(value)


def _as_content(value: Any) -> dict[str, Any]:
    shown = isinstance(value, (str, Block))
    return as_block(value if shown else encode_value(value).decode())


def _tool_result(
    content: list[dict[str, Any]], *, failed: bool = False
) -> dict[str, Any]:
    return {"content": content, "isError": failed}


def _page(
    key: str, definitions: Sequence[Mapping[str, Any]], next_cursor: str | None
) -> dict[str, Any]:
    return without_none({key: list(definitions), "nextCursor": next_cursor})


def _messages(message: str | Message | Mapping[str, Any]) -> list[dict[str, Any]]:
    if isinstance(message, str):
        message = Message(message)
    return message.wire() if isinstance(message, Message) else [dict(message)]
