"""The carriers of a question: how a handler's `ctx.elicit` reaches the client.

    modern    the handler is stopped; the client retries with its answers, and the
              handler runs again with those of all rounds out of the sealed journal
    legacy    the handler waits; the question is a request on the stream of its own

A question is matched to its answer by position and by a digest of what was asked.

Spec 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation and its kin.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from weakref import ref

from mcpkit.context import Channel, Context, Session
from mcpkit.effects import Effects
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    AnswerError,
    ProtocolError,
)
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
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.versions import Revision
from mcpkit.questions import Question
from mcpkit.threads import Threads

T = TypeVar("T")

NO_CARRIER: Final = "MRTR input requests require protocol 2026-07-28"
"""What a legacy client is told whom nothing can be asked."""

WITHDRAWING: Final = 1.0
"""How long a handler waits, in seconds, for a client that does not read to be told that
its answer is not waited for."""


class PausedError(BaseException):
    """A handler stops here until its client has the answer.

    Not an `Exception`, so that a handler which catches those does not catch it.
    """


class RefusedError(AnswerError):
    """A legacy client answered a question with an error.

    Args:
        reason: What the error says.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"The client did not answer: {reason}")
        self.reason = reason


class Conversation:
    """The questions of one run of a handler, and what was kept of earlier ones.

    Args:
        context: The request.
        questions: Where those to legacy clients wait.
        threads: Where functions without async run.
        seconds: How long a legacy client has for an answer.
        journal: What was asked, answered and kept in earlier rounds.
        first: The number of the first question. What was answered to those with
            lower ones, the handler has by asking in the same words.

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
        first: int = 0,
    ) -> None:
        self.journal = journal or Journal()
        self.asked: dict[str, Any] = {}
        # It has this, and would be held by it until the garbage collector comes.
        self._context_ref = ref(context)
        self._questions = questions
        self._seconds = seconds
        self._first = first
        self._position = first
        self._same: Counter[str] = Counter()
        # Whether the handler waits for answers, or is run again with them.
        self._waits = context.revision.era == "legacy"
        self._effects = Effects(self.journal, threads)

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
            RuntimeError: It is another method, of which no answer is a question, or
                the request was answered.
            CancelledError: Nobody waits for the result any more.
            TypeError: One of them is no question.
            ValueError: There are too many questions, or none.
            ProtocolError: -32021, the client can't answer one; -32602, it did not
                answer well, several times over; -32603, there is no way to ask.
            AnswerError: A legacy client did not answer.
        """
        self._check_asker()
        if not 0 < len(questions) <= MAX_QUESTIONS:
            raise ValueError(f"a round has 1 to {MAX_QUESTIONS} questions")
        if self._waits:
            self._check_carrier()
        asked = [self._numbered(key, question) for key, question in questions.items()]
        # Those that a handler asks at the same time take turns, so that their numbers
        # are the same in each round, whichever are answered by then.
        await asyncio.sleep(0)
        answers: dict[str, Any] = {}
        faults: dict[str, ValueError | None] = {}
        for one in asked:
            self._read(one, answers, faults)
        open_ = [one for one in asked if one.key in faults]
        if open_:
            self._check_capabilities({one.key: one.request for one in open_})
            if not self._waits:
                self._pause(open_, faults)
            answers |= await self._ask_now(open_)
        return {key: answers[key] for key in questions}

    async def carry(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Send input requests to a legacy client, and return its responses by key.

        Raises:
            ValueError: A request is malformed.
            ProtocolError: -32021, the client can't answer one; -32603, there is no
                way to ask.
            AnswerError: The client did not answer.
        """
        self._check_carrier()
        self._check_capabilities(requests)
        responses = await _together(map(self._send, requests.values()))
        return dict(zip(requests, responses, strict=True))

    async def once(self, key: str, work: "partial[Any]") -> Any:
        """Return what the work came to, now or in an earlier round.

        Raises:
            PausedError: The client was asked something: it is done in a later round.
            SetupError: It can't be told what the function returns.
            ValueError: The result has no JSON form.
            Exception: Whatever the work raised.
        """
        self.check()
        return await self._effects.once(key, work)

    async def finish(self) -> None:
        """Wait for what the handler does once, when it was stopped meanwhile."""
        await self._effects.finish()

    @property
    def _context(self) -> Context:
        context = self._context_ref()
        assert context is not None  # noqa: S101  # whoever asks has it
        return context

    def _check_asker(self) -> None:
        """Stop those whose client would not answer, or would be waited for in vain.

        Raises:
            RuntimeError: The request can't ask, or was answered.
            CancelledError: Nobody waits for the result any more.
        """
        context = self._context
        method = METHODS.get(context.method)
        if method is None or not method.may_ask:
            raise RuntimeError("tools, resources and prompts can ask, and nothing else")
        if context.outcome is not None:
            raise RuntimeError("the request was answered: its client can't be asked")
        if context.cancelled:
            raise asyncio.CancelledError

    def _next(self) -> int:
        position, self._position = self._position, self._position + 1
        return position

    def _numbered(self, key: Any, question: Any) -> "_Asked":
        if not isinstance(key, str) or not isinstance(question, Question):
            raise TypeError(
                "ctx.ask takes a dict of Elicit, Sample and ListRoots by names, not "
                f"{question!r} by {key!r}"
            )
        position = self._next()
        request = request_of(question, self._context.revision)
        mark = Journal.digest(request)
        nth = self._same[mark]
        self._same[mark] += 1
        return _Asked(key, position, mark, nth, question, request)

    def _read(
        self,
        asked: "_Asked",
        answers: dict[str, Any],
        faults: dict[str, ValueError | None],
    ) -> None:
        """Note the answer that there is to a question, or what is wrong with it."""
        response = self._response_to(asked)
        if response is None:
            faults[asked.key] = None
            return
        try:
            answers[asked.key] = asked.question.read(response)
        except ValueError as error:
            faults[asked.key] = error
        else:
            self.journal.record(asked.position, asked.mark, response)

    def _response_to(self, asked: "_Asked") -> Mapping[str, Any] | None:
        recorded = self.journal.answer_at(asked.position, asked.mark)
        if recorded is None and self._first:
            recorded = self.journal.told_before(self._first, asked.mark, asked.nth)
        if recorded is not None:
            return recorded
        pending = self.journal.pending_for(asked.position, asked.mark)
        return (
            None if pending is None else self._context.input.responses.get(pending[0])
        )

    def _pause(
        self, open_: list["_Asked"], faults: Mapping[str, ValueError | None]
    ) -> None:
        """Stop the handler, and have the client asked.

        Raises:
            PausedError: Always, unless there is an error.
            ProtocolError: -32602, an answer did not fit, as often before.
        """
        if len(open_) + len(self.asked) > MAX_QUESTIONS:
            # They are asked in the next round.
            raise PausedError
        requests: dict[str, Any] = {}
        for one in open_:
            key = self.journal.ask(one.position, one.mark, one.key)
            fault = faults[one.key]
            requests[key] = (
                one.request if fault is None else self._again(key, one.request, fault)
            )
        self.asked |= requests
        self._effects.stopping = True
        raise PausedError

    def _again(self, key: str, request: Any, fault: ValueError) -> Any:
        """Return a request whose answer did not fit, with the reason in its words."""
        try:
            self.journal.fail(key)
        except ValueError as error:
            raise ProtocolError(
                INVALID_PARAMS, f"Invalid params: inputResponses: {key}: {fault}"
            ) from error
        return _with_reason(request, fault)

    async def _ask_now(self, open_: list["_Asked"]) -> dict[str, Any]:
        """Ask over the stream of the request, and return the answers."""
        answers = await _together(map(self._answer, open_))
        return {one.key: answer for one, answer in zip(open_, answers, strict=True)}

    async def _answer(self, asked: "_Asked") -> Any:
        sent, tries = asked.request, 0
        while True:
            response = await self._send(sent)
            try:
                answer = asked.question.read(response)
            except ValueError as error:
                if tries == MAX_TRIES:
                    fault = f"The client's answer does not fit: {error}"
                    raise AnswerError(fault) from error
                sent, tries = _with_reason(asked.request, error), tries + 1
            else:
                self.journal.record(asked.position, asked.mark, response)
                return answer

    async def _send(self, request: Any) -> Mapping[str, Any]:
        """Send a request to a legacy client, and return the result it answers with.

        Raises:
            AnswerError: It answered with an error, or not in time.
        """
        context = self._context
        session, channel = self._carrier()
        sent_as = None

        async def send(request_id: str) -> None:
            nonlocal sent_as
            sent_as = request_id
            method, params = request["method"], request.get("params", {})
            await channel.send(context, jsonrpc.request(method, params, request_id))

        try:
            response = await self._questions.ask(
                session.id, send, self._seconds, lambda: channel.away_since
            )
        except (AnswerError, asyncio.CancelledError):
            if sent_as is not None and not context.cancelled:
                reason = "The answer is not waited for any more"
                meta = request.get("params", {}).get("_meta")
                withdrawn = notifications.cancelled(sent_as, reason, meta)
                with suppress(TimeoutError):
                    async with asyncio.timeout(WITHDRAWING):
                        await channel.send(context, withdrawn)
            raise
        result = response.get("result")
        if not is_object(result):
            raise RefusedError(_fault(response))
        return result

    def _check_carrier(self) -> None:
        self._carrier()

    def _carrier(self) -> tuple[Session, Channel]:
        """Return what carries questions to a legacy client.

        Raises:
            ProtocolError: -32603, nothing does.
        """
        session, channel = self._context.session, self._context.channel
        if session is None or channel is None or not channel.admits_stream:
            raise ProtocolError(INTERNAL_ERROR, NO_CARRIER)
        return session, channel

    def _check_capabilities(self, requests: Mapping[str, Any]) -> None:
        required = required_capabilities(requests)
        check_capabilities(required, self._context.client_capabilities)


class LongConversation(Conversation):
    """The questions of a task: the client sees them when it looks how the task stands.

    What was answered and done is kept with the task, for a worker that goes on with
    it after this one.
    """

    def __init__(
        self,
        context: Context,
        questions: Questions,
        threads: Threads,
        seconds: float,
        journal: Journal | None = None,
        first: int = 0,
    ) -> None:
        super().__init__(context, questions, threads, seconds, journal, first)
        assert context.task is not None  # noqa: S101  # it is why there is one of these
        self._task = context.task
        self._waits = True
        self._effects = Effects(
            self.journal, threads, partial(self._task.save, self.journal)
        )

    async def carry(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Ask what a handler built by itself, and return the responses by its keys.

        Raises:
            ValueError: A request is malformed.
            ProtocolError: -32021, the client can't answer one.
            AnswerError: A legacy client answered one with an error.
        """
        self._check_capabilities(requests)
        sent_as = {
            self.journal.ask(self._next(), Journal.digest(request), key): key
            for key, request in requests.items()
        }
        sent = {key: requests[named] for key, named in sent_as.items()}
        responses = await self._ask_task(sent)
        for key in sent:
            # No key is used again once it was answered.
            self.journal.asked[key] = None
        await self._task.save(self.journal)
        return {sent_as[key]: response for key, response in responses.items()}

    def _check_carrier(self) -> None:
        """A task can always be asked about."""

    async def _ask_task(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Ask under the keys of the journal, and return the responses by them.

        Raises:
            RefusedError: One of them is an error, in place of an answer.
        """
        responses = await self._task.ask(requests, self.journal)
        errors = [it for it in responses.values() if is_object(it.get("error"))]
        if errors:
            for key in requests:
                self.journal.asked[key] = None
            await self._task.save(self.journal)
            raise RefusedError(_fault(errors[0]))
        return responses

    async def _ask_now(self, open_: list["_Asked"]) -> dict[str, Any]:
        """Ask all at once; what was not answered well is asked under another key."""
        answers: dict[str, Any] = {}
        requests = {one.key: one.request for one in open_}
        for _ in range(MAX_TRIES + 1):
            keys = {
                self.journal.ask(one.position, one.mark, one.key): one
                for one in open_
                if one.key not in answers
            }
            sent = {key: requests[one.key] for key, one in keys.items()}
            responses = await self._ask_task(sent)
            fault = None
            for key, one in keys.items():
                try:
                    answers[one.key] = one.question.read(responses[key])
                except ValueError as error:
                    fault = error
                    # No key is used again once it was answered.
                    self.journal.asked[key] = None
                    requests[one.key] = _with_reason(one.request, error)
                else:
                    self.journal.record(one.position, one.mark, responses[key])
            await self._task.save(self.journal)
            if fault is None:
                return answers
        raise AnswerError(f"The client's answer does not fit: {fault}") from fault


class _Asked(NamedTuple):
    """A question of a handler, its number and its digest, and its wire form.

    Attributes:
        nth: Which of those in the same words it is, from 0.
    """

    key: str
    position: int
    mark: str
    nth: int
    question: Question[Any]
    request: dict[str, Any]


def request_of(question: Question[Any], revision: Revision) -> dict[str, Any]:
    """Return a question as it goes on the wire.

    Raises:
        ProtocolError: -32603, the revision has no such question.
    """
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


async def _together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do several things at once; when one of them fails, the others end first.

    Raises:
        BaseException: What the first of those that failed raised.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
