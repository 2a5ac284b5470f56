"""Those who follow tasks: the member `taskIds` of the filter of `subscriptions/listen`.

A change is told of by the worker that makes it. Where workers share nothing but the
store, the tasks that are followed here, and run elsewhere, are looked at in turns.

Spec ext-tasks, specification/draft/tasks: Task Status Notifications.
"""

from collections.abc import Callable, Collection, Container
from typing import Any, Final

from mcpkit.context import Context
from mcpkit.extensions.task_record import owner_of
from mcpkit.extensions.task_wire import detailed, is_expired
from mcpkit.methods.common import invalid_params
from mcpkit.protocol.jsonrpc import notification
from mcpkit.stores.base import TaskStore
from mcpkit.subscriptions import Subscriptions, Topic

FILTER: Final = "taskIds"
"""The member of the filter."""


class TaskFilter:
    """The tasks that are followed in this worker.

    Args:
        store: Where they are kept.
        subscriptions: The streams.
        keep_going: Has `look` called from now on.

    Attributes:
        followed: The revisions that were told of, by the ids of those followed; the
            one that is looked at next comes first.
    """

    def __init__(
        self,
        store: TaskStore,
        subscriptions: Subscriptions,
        keep_going: Callable[[], None],
    ) -> None:
        self.followed: dict[str, int] = {}
        self._store = store
        self._subscriptions = subscriptions
        self._keep_going = keep_going

    async def read(self, context: Context, value: Any) -> Collection[str]:
        """Return the ids of tasks that a client may follow.

        Raises:
            ProtocolError: -32602, the value is malformed.
        """
        if not isinstance(value, list) or not all(isinstance(it, str) for it in value):
            raise invalid_params("Invalid params: taskIds must be an array of strings")
        owner = owner_of(context)
        found = {task_id: await self._store.get(task_id) for task_id in value}
        admitted = [
            task_id
            for task_id, record in found.items()
            if record and record.owner == owner and not is_expired(record)
        ]
        self.followed = dict.fromkeys(admitted, -1) | self.followed
        self._keep_going()
        return admitted

    async def message(self, context: Context, topic: str) -> dict[str, Any] | None:
        """Return the notification of how a task stands."""
        record = await self._store.get(topic)
        if record is None or record.owner != owner_of(context):
            return None
        return notification("notifications/tasks", detailed(record))

    def told(self, task_id: str, revision: int, *, is_seen: bool) -> None:
        """Take note that a task was changed, and tell of what clients see of it."""
        if task_id in self.followed:
            self.followed[task_id] = revision
        if is_seen:
            self._subscriptions.told(Topic(FILTER, task_id))

    async def look(self, run_here: Container[str], limit: int) -> None:
        """Tell of tasks that were changed where nothing but the store is shared.

        Args:
            run_here: The ids of tasks whose changes are told of anyway.
            limit: How many are looked at.
        """
        followed = self._subscriptions.followed(FILTER)
        known = {it: at for it, at in self.followed.items() if it in followed}
        self.followed = known | dict.fromkeys(followed - known.keys(), -1)
        elsewhere = [it for it in self.followed if it not in run_here]
        for task_id in elsewhere[:limit]:
            record = await self._store.get(task_id)
            # It is looked at again when all others were.
            told = self.followed.pop(task_id, -1)
            revision = told if record is None else max(told, record.revision)
            self.followed[task_id] = revision
            if revision > told:
                self._subscriptions.told(Topic(FILTER, task_id))
