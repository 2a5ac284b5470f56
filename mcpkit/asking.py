"""The carriers of a question: how a handler's `ctx.elicit` reaches the client.

    modern    the handler is stopped; the client retries with its answers, and the
              handler runs again with those of all rounds out of the sealed journal
    legacy    the handler waits; the question is a request on the stream of its own

A question is matched to its answer by position and by a digest of what was asked.

Spec 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation and its kin.
"""

import asyncio
import inspect
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import from_json

from mcpkit.context import Context
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    AnswerError,
    ProtocolError,
)
from mcpkit.hints import innermost
from mcpkit.pending import Questions
from mcpkit.protocol import jsonrpc, notifications
from mcpkit.protocol.capabilities import check_capabilities
from mcpkit.protocol.inputs import (
    MAX_QUESTIONS,
    MAX_TRIES,
    Journal,
    required_capabilities,
)
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.versions import Revision
from mcpkit.questions import Question
from mcpkit.signature import is_async
from mcpkit.threads import Threads

NO_CARRIER: Final = "MRTR input requests require protocol 2026-07-28"
"""What a legacy client is told whom nothing can be asked."""


class PausedError(BaseException):
    """A handler stops here until its client has the answer.

    Not an `Exception`, so that a handler which catches those does not catch it.
    """


class Conversation:
    """The questions of one request, and what was kept between its rounds.

    Args:
        context: The request.
        questions: Where those to legacy clients wait.
        threads: Where functions without async run.
        seconds: How long a legacy client has for an answer.
        journal: What was asked, answered and kept in earlier rounds.

    Attributes:
        journal: The same, with what came in this round.
        asked: The input requests that this round ends with, by key.
    """

    def __init__(
        self,
        context: Context,
        questions: Questions,
        threads: Threads,
        seconds: float,
        journal: Journal | None = None,
    ) -> None:
        self.journal = journal or Journal()
        self.asked: dict[str, Any] = {}
        self._context = context
        self._questions = questions
        self._threads = threads
        self._seconds = seconds
        self._position = 0
        self._effects: dict[str, asyncio.Future[Any]] = {}

    def check(self) -> None:
        """Stop a handler that went on although its client was asked something.

        Raises:
            PausedError: It did.
        """
        if self.asked:
            raise PausedError

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask the client, and return its answers by the keys of the questions.

        Raises:
            PausedError: The client is asked when this round has ended.
            ValueError: There are too many questions, or none.
            ProtocolError: -32021, the client can't answer one; -32602, it did not
                answer well, several times over; -32603, there is no way to ask.
            AnswerError: A legacy client did not answer.
        """
        if not 0 < len(questions) + len(self.asked) <= MAX_QUESTIONS:
            raise ValueError(f"a round has 1 to {MAX_QUESTIONS} questions")
        requests = {
            key: _request(question, self._context.revision)
            for key, question in questions.items()
        }
        if self._context.revision.era == "legacy":
            return await self._ask_now(questions, requests)
        return self._ask_later(questions, requests)

    async def carry(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Send input requests to a legacy client, and return its responses by key.

        Raises:
            ValueError: A request is malformed.
            ProtocolError: -32021, the client can't answer one; -32603, there is no
                way to ask.
            AnswerError: The client did not answer.
        """
        self._check_carrier(requests)
        responses = await asyncio.gather(
            *(self._send(request) for request in requests.values())
        )
        return dict(zip(requests, responses, strict=True))

    async def once(self, key: str, work: Callable[[], Any]) -> Any:
        """Return what the work came to, now or in an earlier round.

        Raises:
            ValueError: The result has no JSON form.
            Exception: Whatever the work raised.
        """
        if key in self._effects:
            return await asyncio.shield(self._effects[key])
        if self.journal.has(key):
            return _restored(work, self.journal.kept[key])
        self._effects[key] = effect = asyncio.ensure_future(self._run(work))
        try:
            value = await effect
        finally:
            del self._effects[key]
        self.journal.keep(key, from_json(jsonrpc.encode_value(value)))
        return value

    async def _run(self, work: Callable[[], Any]) -> Any:
        if is_async(work):
            return await work()
        value = await self._threads.run(work)
        return await value if inspect.isawaitable(value) else value

    def _ask_later(
        self, questions: Mapping[str, Question[Any]], requests: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the answers that the client sent, or stop until it has sent all."""
        answers: dict[str, Any] = {}
        unanswered: dict[str, Any] = {}
        for key, question in questions.items():
            position, self._position = self._position, self._position + 1
            mark = Journal.digest(requests[key])
            try:
                response = self.journal.answer_at(position, mark)
                if response is None:
                    response = self._response_to(position, mark, key)
                answers[key] = question.read(response)
            except _UnansweredError as unanswered_as:
                unanswered[unanswered_as.key] = requests[key]
            except ValueError as error:
                sent_as = self.journal.ask(position, mark, key)
                unanswered[sent_as] = self._again(sent_as, requests[key], error)
            else:
                self.journal.record(position, mark, response)
        if unanswered:
            self._check_capabilities(unanswered)
            self.asked |= unanswered
            raise PausedError
        return answers

    def _response_to(self, position: int, mark: str, key: str) -> Mapping[str, Any]:
        """Return what the client answered in this round.

        Raises:
            _UnansweredError: Nothing; it has the key to ask under.
        """
        pending = self.journal.pending_for(position, mark)
        if pending is not None and pending[0] in self._context.input.responses:
            response: Mapping[str, Any] = self._context.input.responses[pending[0]]
            return response
        raise _UnansweredError(self.journal.ask(position, mark, key))

    def _again(self, key: str, request: Any, fault: ValueError) -> Any:
        """Return a request whose answer did not fit, with the reason in its words."""
        try:
            self.journal.fail(key)
        except ValueError as error:
            raise ProtocolError(
                INVALID_PARAMS, f"Invalid params: inputResponses: {key}: {fault}"
            ) from error
        return _with_reason(request, fault)

    async def _ask_now(
        self, questions: Mapping[str, Question[Any]], requests: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask over the stream of the request, and return the answers."""
        self._check_carrier(requests)
        answers = await asyncio.gather(
            *(self._answer(questions[key], requests[key]) for key in questions)
        )
        return dict(zip(questions, answers, strict=True))

    async def _answer(self, question: Question[Any], request: Any) -> Any:
        asked = request
        for _ in range(MAX_TRIES):
            try:
                return question.read(await self._send(asked))
            except ValueError as error:
                asked = _with_reason(request, error)
        try:
            return question.read(await self._send(asked))
        except ValueError as error:
            raise AnswerError(f"The client's answer does not fit: {error}") from error

    async def _send(self, request: Any) -> Mapping[str, Any]:
        """Send a request to a legacy client, and return the result it answers with.

        Raises:
            AnswerError: It answered with an error, or not in time.
        """
        context = self._context
        assert context.session is not None  # noqa: S101  # `_check_carrier` has seen it
        sent_as = ""

        async def send(request_id: str) -> None:
            nonlocal sent_as
            sent_as = request_id
            assert context.channel is not None  # noqa: S101
            method, params = request["method"], request.get("params", {})
            await context.channel.send(
                context, jsonrpc.request(method, params, request_id)
            )

        try:
            response = await self._questions.ask(
                context.session.id, send, self._seconds
            )
        except (TimeoutError, asyncio.CancelledError) as error:
            await self._withdraw(sent_as)
            if isinstance(error, TimeoutError):
                raise AnswerError("The client did not answer in time") from error
            raise
        result = response.get("result")
        if not is_object(result):
            raise AnswerError(f"The client did not answer: {_fault(response)}")
        return result

    async def _withdraw(self, request_id: str) -> None:
        channel = self._context.channel
        if channel is not None and not self._context.cancelled:
            reason = "The answer is not waited for any more"
            await channel.send(
                self._context, notifications.cancelled(request_id, reason)
            )

    def _check_carrier(self, requests: Mapping[str, Any]) -> None:
        context = self._context
        channel = context.channel
        if context.session is None or channel is None or not channel.admits_stream:
            raise ProtocolError(INTERNAL_ERROR, NO_CARRIER)
        self._check_capabilities(requests)

    def _check_capabilities(self, requests: Mapping[str, Any]) -> None:
        required = required_capabilities(requests)
        check_capabilities(required, self._context.client_capabilities)


class _UnansweredError(Exception):
    """A question has no answer yet, and is to be sent under a key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _request(question: Question[Any], revision: Revision) -> dict[str, Any]:
    try:
        return question.request(
            revision,
            elicitation_id=secrets.token_urlsafe(16)
            if revision.elicitation_ids
            else None,
        )
    except ValueError as error:
        raise ProtocolError(INTERNAL_ERROR, str(error)) from error


def _with_reason(request: Any, fault: ValueError) -> Any:
    params = request["params"]
    if not isinstance(params.get("message"), str):
        return request
    message = f"{params['message']}\n\n{fault}"
    return {**request, "params": {**params, "message": message}}


def _fault(response: Mapping[str, Any]) -> str:
    error = response.get("error")
    message = error.get("message") if is_object(error) else None
    return message if isinstance(message, str) else "its response is malformed"


def _restored(work: Callable[[], Any], value: Any) -> Any:
    """Return a kept value, as the type that the function is annotated with."""
    function = work.func if isinstance(work, partial) else work
    annotation = get_type_hints(innermost(function)).get("return", Any)
    return TypeAdapter(annotation).validate_json(jsonrpc.encode(value))
