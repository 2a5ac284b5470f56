"""What was measured, and its medians, ratios and spread."""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import sub, truediv
from statistics import median, quantiles


@dataclass(frozen=True, slots=True)
class Summary:
    """A median, and the quartiles around it."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, in parts of the median."""
        return (self.high - self.low) / 2 / self.median


def summarise(values: list[float]) -> Summary:
    """Summarise what was measured in several rounds."""
    if len(values) == 1:
        return Summary(values[0], values[0], values[0])
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Summary(median(values), low, high)


@dataclass(frozen=True, slots=True)
class Samples:
    """One value a round, by work and by subject.

    The values of a round belong together: they were taken within seconds, so
    that the ratio of two subjects is taken round by round.

    Attributes:
        values: The values, by work and by subject.
        notes: What a reader of them must know.
    """

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, work: str, subject: str, value: float) -> None:
        """Add the value of a round."""
        self.values.setdefault(work, {}).setdefault(subject, []).append(value)

    def get(self, work: str, subject: str) -> Summary | None:
        """Return what a subject took, or `None` where it was not measured."""
        values = self.values.get(work, {}).get(subject)
        return None if values is None else summarise(values)

    def ratio(self, over: tuple[str, str], under: tuple[str, str]) -> Summary | None:
        """Return the ratio of two, each a work and a subject."""
        return self._compare(over, under, truediv)

    def difference(
        self, more: tuple[str, str], less: tuple[str, str]
    ) -> Summary | None:
        """Return the difference of two, each a work and a subject."""
        return self._compare(more, less, sub)

    def _compare(
        self,
        first: tuple[str, str],
        second: tuple[str, str],
        compare: Callable[[float, float], float],
    ) -> Summary | None:
        firsts = self.values.get(first[0], {}).get(first[1])
        seconds = self.values.get(second[0], {}).get(second[1])
        if firsts is None or seconds is None:
            return None
        return summarise(list(map(compare, firsts, seconds)))
