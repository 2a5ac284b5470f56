"""Questions to the client: the capabilities each kind needs, and the journal.

A handler that asks runs again from its first line in each round. The journal
holds what was asked and answered before, so that a question is asked once. It is
sealed into the `requestState` between the rounds.

Spec 2026-07-28, basic/patterns/mrtr: Input Requests, Basic Workflow.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pydantic_core import SchemaValidator, ValidationError, core_schema

from mcpkit.protocol.jsonrpc import is_object

MAX_ROUNDS: Final = 10
"""How many rounds one call of a handler may take."""

MAX_QUESTIONS: Final = 16
"""How many questions may be asked in one round."""

MAX_TRIES: Final = 2
"""How often a question is asked again whose answer does not fit."""

DECIDED: Final = 1000
"""The number of a handler's first question, where others came before it was called."""

INPUT_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elicitation/create": "elicitation",
        "sampling/createMessage": "sampling",
        "roots/list": "roots",
    }
)
"""The methods a question may have, and the client capability of each."""


def required_capabilities(requests: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the client capabilities that a set of input requests needs.

    Args:
        requests: Input requests by key, each with a `method` and `params`.

    Raises:
        ValueError: A request is not an object with one of the known methods.

    Example:
        >>> required_capabilities({"ask": {"method": "roots/list"}})
        {'roots': {}}
    """
    required: dict[str, Any] = {}
    for key, request in requests.items():
        method = str(request.get("method")) if is_object(request) else ""
        if method not in INPUT_KINDS:
            known = ", ".join(INPUT_KINDS)
            raise ValueError(f"the input request {key!r} needs a method of {known}")
        params = request.get("params")
        needed = required.setdefault(INPUT_KINDS[method], {})
        needed.update(_details(method, params if is_object(params) else {}))
    return required


def _details(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    match method:
        case "elicitation/create":
            return {"url" if params.get("mode") == "url" else "form": {}}
        case "sampling/createMessage":
            needed: dict[str, Any] = {}
            if "tools" in params or "toolChoice" in params:
                needed["tools"] = {}
            if params.get("includeContext", "none") != "none":
                needed["context"] = {}
            return needed
        case _:
            return {}


class Entry(NamedTuple):
    """An answer that was recorded.

    Attributes:
        digest: That of the question.
        response: The client's response.
    """

    digest: str
    response: Mapping[str, Any]


class Asked(NamedTuple):
    """A question that was sent.

    Attributes:
        position: Which question of the handler's it is, from 0.
        digest: That of the question.
        tries: How many of its answers did not fit.
    """

    position: int
    digest: str
    tries: int = 0


@dataclass(slots=True)
class Journal:
    """What was asked, answered and kept in the rounds of one call.

    A question is known by its position, the how-manieth of the handler's it is, and
    by its digest. One that reads differently in a later round is another question:
    it is asked anew, and so is all that came after it.

    Attributes:
        entries: The recorded answers, by position.
        asked: The questions that were sent, by key; `None` for a forgotten one. No
            key is used again, so that no late answer is taken for one to another
            question.
        kept: What the handler did once, by its own keys: JSON values.
        begun: What it began to do once and has not ended, where that is kept.
        round: Which round this is, from 1.
        changed: A question was not the one of the rounds before.

    Example:
        >>> journal = Journal()
        >>> roots = Journal.digest({"method": "roots/list", "params": {}})
        >>> journal.ask(0, roots, "roots")
        'roots'
        >>> journal = Journal.load(journal.dump())
        >>> journal.record(0, roots, {"roots": []})
        >>> journal.answer_at(0, roots)
        {'roots': []}
    """

    entries: dict[int, Entry] = field(default_factory=dict)
    asked: dict[str, Asked | None] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    round: int = 1
    changed: bool = field(default=False, compare=False)

    @staticmethod
    def digest(request: Mapping[str, Any]) -> str:
        """Return what tells a question from others: 16 hexadecimal digits.

        The id of an elicitation does not count: it is another one in each round.

        Args:
            request: The question in wire form: its `method` and `params`.

        Example:
            >>> Journal.digest({"method": "roots/list", "params": {}})
            'ddbcb687169b0738'
        """
        params = {
            key: value
            for key, value in request.get("params", {}).items()
            if key != "elicitationId"
        }
        canonical = json.dumps(
            [request["method"], params], sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def answer_at(self, position: int, digest: str) -> Mapping[str, Any] | None:
        """Return the recorded response to a question, if there is one.

        When it was another question at that position, all from there on is
        forgotten: look here before a question is asked.
        """
        if any(it != digest for it in self._digests_at(position)):
            self._forget(position)
        entry = self.entries.get(position)
        return None if entry is None else entry.response

    def _digests_at(self, position: int) -> Iterator[str]:
        if position in self.entries:
            yield self.entries[position].digest
        for asked in self.asked.values():
            if asked is not None and asked.position == position:
                yield asked.digest

    def _forget(self, position: int) -> None:
        self.changed = True
        self.entries = {at: it for at, it in self.entries.items() if at < position}
        for key, asked in self.asked.items():
            if asked is not None and asked.position >= position:
                self.asked[key] = None

    def told_before(self, position: int, digest: str, nth: int) -> Any:
        """Return what was answered to a question in the same words, before a position.

        Args:
            position: The number of the question from which on it does not count.
            digest: That of the question.
            nth: Which of those in the same words, from 0.
        """
        told = [
            entry.response
            for at, entry in sorted(self.entries.items())
            if at < position and entry.digest == digest
        ]
        return told[nth] if nth < len(told) else None

    def record(self, position: int, digest: str, response: Mapping[str, Any]) -> None:
        """Record a response that fits its question."""
        self.entries[position] = Entry(digest, response)

    def pending_for(self, position: int, digest: str) -> tuple[str, int] | None:
        """Return the key that a question was sent with, and how often it failed."""
        for key, asked in self.asked.items():
            if asked is not None and asked[:2] == (position, digest):
                return key, asked.tries
        return None

    def ask(self, position: int, digest: str, wanted_key: str) -> str:
        """Return the key to send a question with: that of before, or a new one.

        Args:
            position: Which question of the handler's it is.
            digest: That of the question.
            wanted_key: The key, if it is free; else with a number after it.
        """
        pending = self.pending_for(position, digest)
        if pending is not None:
            return pending[0]
        key = wanted_key
        numbers = count(2)
        while key in self.asked:
            key = f"{wanted_key}-{next(numbers)}"
        self.asked[key] = Asked(position, digest)
        return key

    def fail(self, key: str) -> None:
        """Count an answer that does not fit its question.

        Raises:
            ValueError: It was asked again `MAX_TRIES` times before.
        """
        asked = self.asked[key]
        if asked is None or asked.tries >= MAX_TRIES:
            raise ValueError(f"no answer to {key!r} fits")
        self.asked[key] = asked._replace(tries=asked.tries + 1)

    def has(self, key: str) -> bool:
        """Whether something is kept under a key; it may be `None`."""
        return key in self.kept

    def keep(self, key: str, value: Any) -> None:
        """Keep a JSON value for the rounds to come."""
        self.kept[key] = value

    def advance(self) -> None:
        """Begin the next round.

        Raises:
            ValueError: There were `MAX_ROUNDS` of them.
        """
        if self.round >= MAX_ROUNDS:
            raise ValueError(f"more than {MAX_ROUNDS} rounds of questions")
        self.round += 1

    def dump(self) -> dict[str, Any]:
        """Return the journal as JSON."""
        return {
            "e": [[position, *entry] for position, entry in self.entries.items()],
            "a": {key: asked and [*asked] for key, asked in self.asked.items()},
            "k": dict(self.kept),
            "b": sorted(self.begun),
            "r": self.round,
        }

    @classmethod
    def load(cls, dumped: object) -> "Journal":
        """Return the journal that was dumped.

        Raises:
            ValueError: It is none.
        """
        try:
            read = _DUMPED.validate_python(dumped)
        except ValidationError as error:
            raise ValueError("this is no journal") from error
        entries = {position: Entry(*entry) for position, *entry in read["e"]}
        if len(entries) < len(read["e"]):
            raise ValueError("this is no journal")
        return cls(
            entries=entries,
            asked={key: asked and Asked(*asked) for key, asked in read["a"].items()},
            kept=read["k"],
            begun=set(read["b"]),
            round=read["r"],
        )


def _array(*items: core_schema.CoreSchema) -> core_schema.CoreSchema:
    # JSON has lists in place of tuples.
    return core_schema.tuple_schema([*items])


_POSITION: Final = core_schema.int_schema(ge=0, strict=True)
_DIGEST: Final = core_schema.str_schema(pattern="^[0-9a-f]{16}$", strict=True)
_KEY: Final = core_schema.str_schema(strict=True)
_ANY: Final = core_schema.any_schema()
_DUMPED: Final = SchemaValidator(
    core_schema.typed_dict_schema(
        {
            name: core_schema.typed_dict_field(schema)
            for name, schema in {
                "e": core_schema.list_schema(
                    _array(_POSITION, _DIGEST, core_schema.dict_schema(_KEY, _ANY))
                ),
                "a": core_schema.dict_schema(
                    _KEY,
                    core_schema.nullable_schema(_array(_POSITION, _DIGEST, _POSITION)),
                ),
                "k": core_schema.dict_schema(_KEY, _ANY),
                "b": core_schema.list_schema(_KEY),
                "r": core_schema.int_schema(ge=1, le=MAX_ROUNDS, strict=True),
            }.items()
        },
        extra_behavior="forbid",
    )
)
