"""The questions that a handler can ask its client, and the answers.

    Elicit      the user fills in a form, or visits a page    an Answer
    Sample      the client's model writes a message           a Sampled
    ListRoots   where the client works                        a list of Roots

A question is a value: it knows its form on the wire, what the client must be able
to do, and how to read a response. How it gets to the client is not its concern.

Spec 2026-07-28, client/elicitation, client/sampling and client/roots.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)
from urllib.parse import urlsplit

from pydantic_core import from_json

from mcpkit.errors import SetupError
from mcpkit.faults import listed
from mcpkit.forms import Form, read_form
from mcpkit.protocol.content import Message, as_blocks, without_none
from mcpkit.protocol.inputs import required_capabilities
from mcpkit.protocol.jsonrpc import encode, is_object
from mcpkit.protocol.legacy import definition
from mcpkit.protocol.versions import LATEST_MODERN, Revision

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Role: TypeAlias = Literal["user", "assistant"]


class Question(ABC, Generic[A_co]):
    """What can be asked of a client; it is generic in the answer.

    Attributes:
        method: The method of the request.
    """

    __slots__ = ()

    method: ClassVar[str]

    @abstractmethod
    def params(self, revision: Revision, elicitation_id: str | None) -> dict[str, Any]:
        """Return the params of the request, as a revision has them."""

    @abstractmethod
    def read(self, response: Mapping[str, Any]) -> A_co:
        """Read the client's response.

        Raises:
            ValueError: It does not fit; a line a fault, without the values.
        """

    def request(
        self, revision: Revision, *, elicitation_id: str | None = None
    ) -> dict[str, Any]:
        """Return the request as it goes on the wire: its method and params.

        Args:
            revision: The revision that the client speaks.
            elicitation_id: A random id, for the revisions that have them.

        Raises:
            ValueError: The revision has no such question.
        """
        return {
            "method": self.method,
            "params": self.params(revision, elicitation_id),
        }

    @property
    def required(self) -> dict[str, Any]:
        """The client capabilities that it needs."""
        return required_capabilities({"": self.request(LATEST_MODERN)})


# Neither this nor `Elicit` has slots: Python 3.11 can't make a `Generic[...]` with
# them that is frozen.
@dataclass(frozen=True, init=False, repr=False)
class Answer(Generic[T_co]):
    """What a user did with a question.

    Attributes:
        action: The user submitted the form, or agreed to visit the page; said no;
            or turned away without a choice.
    """

    action: Literal["accept", "decline", "cancel"]
    _data: T_co | None

    def __init__(
        self,
        action: Literal["accept", "decline", "cancel"],
        data: T_co | None = None,
    ) -> None:
        object.__setattr__(self, "action", action)
        object.__setattr__(self, "_data", data)

    def __repr__(self) -> str:
        data = f", data={self._data!r}" if self.accepted else ""
        return f"Answer(action={self.action!r}{data})"

    @property
    def data(self) -> T_co:
        """What was filled in; `None` where the user agreed to visit a page.

        Raises:
            ValueError: The user did neither.
        """
        if not self.accepted:
            raise ValueError("the user did not accept: there is no data")
        return self._data  # type: ignore[return-value]  # `Answer[None]` has None

    @property
    def accepted(self) -> bool:
        """The user submitted the form, or agreed to visit the page."""
        return self.action == "accept"

    @property
    def declined(self) -> bool:
        """The user said no."""
        return self.action == "decline"

    @property
    def cancelled(self) -> bool:
        """The user turned away without a choice."""
        return self.action == "cancel"


@dataclass(frozen=True, init=False)
class Elicit(Question[Answer[T]]):
    """A question to the user. Spec 2026-07-28, client/elicitation.

    A secret, such as a password or a key, may not pass through the client: it is
    asked for on a page of the server's own, and never with a form.

    Args:
        message: Why it is asked.
        schema: The form: a model, a dataclass or a TypedDict of strings, numbers,
            booleans and enums, or their JSON Schema.
        url: The page, in place of a form: an absolute http or https URL. It tells
            nothing of the user, and opens no door by itself. That it was accepted
            says no more than that the user agreed to go there.

    Raises:
        SetupError: It is no form that a client could show, no such URL, or both.

    Example:
        >>> page = Elicit("Connect your calendar", url="https://example.com/connect")
        >>> page.read({"action": "accept"})
        Answer(action='accept', data=None)
    """

    method: ClassVar[str] = "elicitation/create"

    message: str
    schema: Any
    url: str | None
    _form: Form[T] | None = field(repr=False, compare=False)

    @overload
    def __init__(self, message: str, schema: type[T]) -> None: ...

    @overload
    def __init__(
        self: "Elicit[dict[str, Any]]", message: str, schema: Mapping[str, Any]
    ) -> None: ...

    @overload
    def __init__(self: "Elicit[None]", message: str, *, url: str) -> None: ...

    # Those who pass on what they were given.
    @overload
    def __init__(
        self: "Elicit[Any]", message: str, schema: Any, *, url: str | None
    ) -> None: ...

    def __init__(
        self, message: str, schema: Any = None, *, url: str | None = None
    ) -> None:
        if not isinstance(message, str):
            raise SetupError(f"the message of an Elicit is a string, not {message!r}")
        if (schema is None) == (url is None):
            raise SetupError(
                "an Elicit takes either the schema of a form or the url of a page: "
                "Elicit('Sure?', Confirm), or Elicit('Pay here', url='https://...')"
            )
        if url is not None:
            _check_url(url)
        form = None if url is not None else read_form(schema, "Elicit")
        for name, value in (
            ("message", message),
            ("schema", schema),
            ("url", url),
            ("_form", form),
        ):
            object.__setattr__(self, name, value)

    def params(self, revision: Revision, elicitation_id: str | None) -> dict[str, Any]:
        """Return the params of the request, as a revision has them."""
        if self._form is None:
            return self._url_params(revision, elicitation_id)
        if not revision.elicitation:
            raise ValueError(f"{revision.version} has no elicitation")
        params = {"message": self.message, "requestedSchema": self._form.wire(revision)}
        return {"mode": "form", **params} if revision.rich_forms else params

    def _url_params(
        self, revision: Revision, elicitation_id: str | None
    ) -> dict[str, Any]:
        if not revision.url_elicitation:
            raise ValueError(f"{revision.version} has no elicitation with a URL")
        params = {"mode": "url", "message": self.message, "url": self.url}
        if not revision.elicitation_ids:
            return params
        if elicitation_id is None:
            raise ValueError(f"{revision.version} needs an elicitation_id")
        return {**params, "elicitationId": elicitation_id}

    def read(self, response: Mapping[str, Any]) -> Answer[T]:
        """Read the user's answer.

        Raises:
            ValueError: It does not fit; a line a fault, without the values.
        """
        match response.get("action"):
            case "accept" if self._form is not None:
                content = response.get("content")
                read = self._form.read({} if content is None else content)
                return Answer("accept", read)
            case ("accept" | "decline" | "cancel") as action:
                return Answer(action)
            case _:
                raise ValueError("action: input should be accept, decline or cancel")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname)
    except (AttributeError, ValueError):
        is_page = False
    if not is_page or not url.isprintable() or " " in url:
        raise SetupError(
            f"the url of an Elicit is an absolute http or https URL, not {url!r}"
        )
    if "@" in parts.netloc:
        raise SetupError(
            "the url of an Elicit is shown to the client, and may hold no password"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPreferences:
    """What model a server would like. The client decides.

    Spec 2026-07-28, client/sampling: Model Preferences.

    Args:
        hints: Names of models, or parts of them, the best first.
        cost: How much it matters that it is cheap, from 0 to 1.
        speed: How much it matters that it is fast.
        intelligence: How much it matters that it is capable.

    Raises:
        ValueError: One of them is something else.
    """

    hints: Sequence[str] = ()
    cost: float | None = None
    speed: float | None = None
    intelligence: float | None = None

    def __post_init__(self) -> None:
        _check("hints", self.hints, _are_texts(self.hints), "a list of names of models")
        for name in ("cost", "speed", "intelligence"):
            value = getattr(self, name)
            fits = value is None or (_is_number(value) and 0 <= value <= 1)
            _check(name, value, fits, "a number from 0 to 1")

    def wire(self) -> dict[str, Any]:
        """Return the preferences as they go on the wire."""
        return without_none(
            {
                "hints": [{"name": name} for name in self.hints] or None,
                "costPriority": self.cost,
                "speedPriority": self.speed,
                "intelligencePriority": self.intelligence,
            }
        )


Preferences: TypeAlias = ModelPreferences | Mapping[str, Any] | Sequence[str]
"""Preferences, their arguments, or names of models."""


class SampleOptions(TypedDict, total=False):
    """The options of a `Sample` but `max_tokens`, for those who pass them on."""

    system_prompt: str | None
    model_preferences: Preferences | None
    temperature: float | None
    stop_sequences: Sequence[str] | None
    tools: Sequence[Mapping[str, Any]] | None
    tool_choice: Literal["auto", "required", "none"] | None
    include_context: Literal["none", "thisServer", "allServers"] | None
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Sampled:
    """A message that the client's model wrote.

    Attributes:
        role: Whose message it is.
        content: Its blocks, in wire form.
        model: The name of the model.
        stop_reason: Why it stopped, such as "endTurn", "maxTokens" or "toolUse".
    """

    role: Role
    content: list[dict[str, Any]]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The texts of the message, put together."""
        return "".join(it["text"] for it in self.content if it["type"] == "text")

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        """The blocks that ask for a tool to be called: `id`, `name` and `input`."""
        return [block for block in self.content if block["type"] == "tool_use"]


Turn: TypeAlias = str | Message | Sampled | Mapping[str, Any]
"""A message: a text of the user's, one that was sampled, or its wire form."""


@dataclass(frozen=True, slots=True)
class Sample(Question[Sampled]):
    """A question to the client's model. Spec 2026-07-28, client/sampling.

    Args:
        messages: A text, which is the user's, or the messages so far: texts,
            `Message`s, what was sampled before, or dictionaries with a `role` and
            `content`.
        max_tokens: How many tokens the model may write.
        system_prompt: What the model is told beforehand.
        model_preferences: Names of models, the best first; or the arguments of
            `ModelPreferences`.
        temperature: How random the message may be; what range it has depends on
            the model.
        stop_sequences: Texts at which the model stops.
        tools: Definitions of tools that the model may ask to be called.
        tool_choice: Whether it decides that by itself, must, or may not.
        include_context: Whose context the client adds. Deprecated, save for "none".
        metadata: What else the model's provider understands.

    Raises:
        ValueError: The messages or the options are malformed.

    Example:
        >>> Sample("Hello", max_tokens=9).required
        {'sampling': {}}
    """

    method: ClassVar[str] = "sampling/createMessage"

    messages: Turn | Sequence[Turn]
    _: KW_ONLY
    max_tokens: int = 1024
    system_prompt: str | None = None
    model_preferences: Preferences | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: Literal["auto", "required", "none"] | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    metadata: Mapping[str, Any] | None = None
    _params: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        turns = _read_turns(self.messages)
        _check_turns(turns)
        most = self.max_tokens
        _check("max_tokens", most, type(most) is int and most >= 1, "at least 1")
        for name, (fits, expected) in _OPTIONS.items():
            value = getattr(self, name)
            _check(name, value, value is None or fits(value), expected)
        choice = self.tool_choice
        params = {
            "messages": turns,
            "maxTokens": self.max_tokens,
            "systemPrompt": self.system_prompt,
            "modelPreferences": _read_preferences(self.model_preferences),
            "temperature": self.temperature,
            "stopSequences": self.stop_sequences,
            "tools": self.tools,
            "toolChoice": None if choice is None else {"mode": choice},
            "includeContext": self.include_context,
            "metadata": self.metadata,
        }
        # A copy, which later changes do not get to.
        copied = from_json(encode(without_none(params)))
        object.__setattr__(self, "_params", copied)

    def params(self, revision: Revision, elicitation_id: str | None) -> dict[str, Any]:  # noqa: ARG002  # of other questions
        """Return the params of the request, as a revision has them."""
        params = dict(self._params)
        turns = params["messages"]
        if not revision.sampling_tools:
            if params.keys() & {"tools", "toolChoice"} or any(map(_has_tools, turns)):
                raise ValueError(f"{revision.version} has no tools in sampling")
            # A message has one block.
            turns = [
                {**turn, "content": [block]}
                for turn in turns
                for block in turn["content"]
            ]
        if "tools" in params and revision.era == "legacy":
            params["tools"] = [definition(it, revision) for it in params["tools"]]
        return {**params, "messages": [_unpacked(turn) for turn in turns]}

    def read(self, response: Mapping[str, Any]) -> Sampled:
        """Read the model's message.

        Raises:
            ValueError: It does not fit; a line a fault, without the values.
        """
        content = response.get("content")
        blocks: list[Any] = content if isinstance(content, list) else [content]
        stop_reason = response.get("stopReason")
        _fit("role", response.get("role") in _ROLES, "user or assistant")
        _check_blocks(blocks, "content")
        _fit("model", isinstance(response.get("model"), str), "a string")
        _fit("stopReason", isinstance(stop_reason, (str, type(None))), "a string")
        return Sampled(response["role"], blocks, response["model"], stop_reason)


def _fit(where: str, fits: bool, expected: str) -> None:  # noqa: FBT001  # what is checked
    if not fits:
        raise ValueError(f"{where}: input should be {expected}")


def _check(name: str, value: Any, fits: bool, expected: str) -> None:  # noqa: FBT001  # what is checked
    if not fits:
        raise ValueError(f"{name} is {expected}, not {value!r}")


def _read_turns(messages: Any) -> list[dict[str, Any]]:
    """Return messages in wire form, each with a list of blocks."""
    if isinstance(messages, (str, Message, Sampled, Mapping)):
        messages = [messages]
    _check("messages", messages, isinstance(messages, (list, tuple)), "a list")
    turns = []
    for index, message in enumerate(messages):
        try:
            turns.append(_read_turn(message))
        except TypeError as error:
            raise ValueError(f"messages.{index}: {error}") from error
    return turns


def _read_turn(message: Any) -> dict[str, Any]:
    match message:
        case str():
            return {"role": "user", "content": as_blocks(message)}
        case Message() | Sampled():
            return {"role": message.role, "content": as_blocks(message.content)}
        case {"role": _, "content": content}:
            return {**message, "content": as_blocks(content)}
        case _:
            raise TypeError("a message is a text, a Message, or has role and content")


def _check_turns(turns: Sequence[Mapping[str, Any]]) -> None:
    """Check the blocks of messages, and that tools have their results.

    Spec 2026-07-28, client/sampling: Message Content Constraints.
    """
    if not turns:
        raise ValueError("messages is empty")
    pending: set[str] = set()
    for index, turn in enumerate(turns):
        where, role = f"messages.{index}", turn["role"]
        _fit(f"{where}.role", role in _ROLES, "user or assistant")
        _check_blocks(turn["content"], f"{where}.content")
        results = _ids(turn, "tool_result", "toolUseId")
        others = [it for it in turn["content"] if it["type"] != "tool_result"]
        if results and (others or role != "user"):
            raise ValueError(f"{where}: tool results stand alone, in a user message")
        if results != pending:
            raise ValueError(f"{where}: {_UNBALANCED}")
        pending = _ids(turn, "tool_use", "id")
        if pending and role != "assistant":
            raise ValueError(f"{where}: tools are used in an assistant message")
    if pending:
        raise ValueError(f"messages: {_UNBALANCED}")


_UNBALANCED: Final = "each use of a tool has its result in the next message"


def _ids(turn: Mapping[str, Any], kind: str, member: str) -> set[str]:
    return {block[member] for block in turn["content"] if block["type"] == kind}


def _has_tools(turn: Mapping[str, Any]) -> bool:
    return any(block["type"].startswith("tool_") for block in turn["content"])


def _unpacked(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as all clients read it that has one block."""
    blocks = turn["content"]
    return {**turn, "content": blocks[0] if len(blocks) == 1 else blocks}


def _check_blocks(blocks: Sequence[Any], where: str) -> None:
    _fit(where, len(blocks) > 0, "a content block, or several")
    for block in blocks:
        kind = block.get("type") if is_object(block) else None
        members = _BLOCKS.get(kind) if isinstance(kind, str) else None
        if members is None:
            raise ValueError(f"{where}: expected a block of {listed(_BLOCKS)}")
        lacking = [
            name
            for name, expected in members.items()
            if not isinstance(block.get(name), expected)
        ]
        if lacking:
            raise ValueError(f"{where}: a {kind} block needs its {lacking[0]}")


_ROLES: Final = ("user", "assistant")

_BLOCKS: Final[Mapping[str, Mapping[str, type]]] = MappingProxyType(
    {
        "text": {"text": str},
        "image": {"data": str, "mimeType": str},
        "audio": {"data": str, "mimeType": str},
        "tool_use": {"id": str, "name": str, "input": dict},
        "tool_result": {"toolUseId": str, "content": list},
    }
)
"""The blocks that sampled messages have, and what each of them needs."""


def _read_preferences(preferences: Any) -> dict[str, Any] | None:
    match preferences:
        case None:
            return None
        case ModelPreferences():
            return preferences.wire()
        case Mapping():
            try:
                return ModelPreferences(**preferences).wire()
            except TypeError as error:
                raise ValueError(
                    "model_preferences takes hints, cost, speed and intelligence"
                ) from error
        case _:
            return ModelPreferences(hints=preferences).wire()


def _are_texts(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple))
    return is_list and all(isinstance(item, str) for item in value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _are_tools(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple))
    return is_list and all(
        isinstance(tool, Mapping)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("inputSchema"), Mapping)
        and tool["inputSchema"].get("type") == "object"
        for tool in value
    )


_OPTIONS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = MappingProxyType(
    {
        "system_prompt": (lambda value: isinstance(value, str), "a string"),
        "temperature": (_is_number, "a number"),
        "stop_sequences": (_are_texts, "a list of strings"),
        "tools": (
            _are_tools,
            'a list of definitions, each with a name and an inputSchema of "object"',
        ),
        "tool_choice": (
            ("auto", "required", "none").__contains__,
            "auto, required or none",
        ),
        "include_context": (
            ("none", "thisServer", "allServers").__contains__,
            "none, thisServer or allServers",
        ),
        "metadata": (lambda value: isinstance(value, Mapping), "a dict"),
    }
)
"""What the options of a `Sample` are that may be left out."""


@dataclass(frozen=True, slots=True)
class Root:
    """A directory or a file that a client works with.

    Attributes:
        uri: Where it is, most often a `file://` URI.
        name: What people call it.
    """

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoots(Question[list[Root]]):
    """Which directories and files a client works with.

    Spec 2026-07-28, client/roots.

    Example:
        >>> ListRoots().read({"roots": [{"uri": "file:///home/ada"}]})
        [Root(uri='file:///home/ada', name=None)]
    """

    method: ClassVar[str] = "roots/list"

    def params(self, revision: Revision, elicitation_id: str | None) -> dict[str, Any]:  # noqa: ARG002  # of other questions
        """Return the params of the request: there are none."""
        return {}

    def read(self, response: Mapping[str, Any]) -> list[Root]:
        """Read the client's roots.

        Raises:
            ValueError: They are no roots; without the values.
        """
        roots: Any = response.get("roots")
        _fit("roots", isinstance(roots, list), "an array")
        return [*map(_read_root, roots, count())]


def _read_root(root: Any, index: int) -> Root:
    _fit(f"roots.{index}", is_object(root), "an object")
    uri, name = root.get("uri"), root.get("name")
    _fit(f"roots.{index}.uri", isinstance(uri, str), "a string")
    _fit(f"roots.{index}.name", isinstance(name, (str, type(None))), "a string")
    return Root(uri, name)
