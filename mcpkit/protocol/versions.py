"""The revisions of the protocol, and what each one has.

The only table of revisions in mcpkit: what differs between two of them is a
field of `Revision`, never a comparison of version strings. Revisions are an
enumerated set, so an unknown version is not "newer" than anything: it is
unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Era: TypeAlias = Literal["modern", "legacy"]
"""Modern requests stand alone; legacy ones lean on an `initialize` handshake."""

ERAS: Final[frozenset[Era]] = frozenset({"modern", "legacy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of the protocol: a row of the table.

    Attributes:
        version: Its name on the wire.
        era: The era it belongs to.
        batches: A JSON array of messages is answered, not refused.
        icons: Definitions carry `icons`, and implementations `websiteUrl`.
        definitions: Definitions carry `title`, `outputSchema` and `_meta`,
            results carry `structuredContent`, contents hold resource links.
        elicitation: Users can be asked, with a form.
        url_elicitation: Users can be sent to a page instead.
        elicitation_ids: A question that sends a user to a page has an id.
        rich_forms: Forms name their mode, and hold titled choices, several
            choices at once, and defaults of all types.
        sampling_tools: Models can be asked with tools, and their messages may
            have several blocks.
        polling: A stream begins with an event to come back to.
        tasks: Requests may become tasks without an extension.
        header: Its name, as a header has it.
    """

    version: str
    era: Era
    batches: bool
    icons: bool
    definitions: bool
    elicitation: bool
    url_elicitation: bool
    elicitation_ids: bool
    rich_forms: bool
    sampling_tools: bool
    polling: bool
    tasks: bool
    header: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", self.version.encode())


_2025_03_26 = Revision(
    version="2025-03-26",
    era="legacy",
    batches=True,
    icons=False,
    definitions=False,
    elicitation=False,
    url_elicitation=False,
    elicitation_ids=False,
    rich_forms=False,
    sampling_tools=False,
    polling=False,
    tasks=False,
)
_2025_06_18 = replace(
    _2025_03_26,
    version="2025-06-18",
    batches=False,
    definitions=True,
    elicitation=True,
)
_2025_11_25 = replace(
    _2025_06_18,
    version="2025-11-25",
    icons=True,
    url_elicitation=True,
    elicitation_ids=True,
    rich_forms=True,
    sampling_tools=True,
    polling=True,
    tasks=True,
)
_2026_07_28 = replace(
    _2025_11_25,
    version="2026-07-28",
    era="modern",
    elicitation_ids=False,
    polling=False,
    tasks=False,
)
# Spoken by clients that are older than Streamable HTTP; served as 2025-03-26.
_2024_11_05 = replace(_2025_03_26, version="2024-11-05")

REVISIONS: Final[Mapping[str, Revision]] = MappingProxyType(
    {
        revision.version: revision
        for revision in (
            _2026_07_28,
            _2025_11_25,
            _2025_06_18,
            _2025_03_26,
            _2024_11_05,
        )
    }
)
"""Every revision that is served, newest first."""

LATEST_LEGACY: Final = _2025_11_25
"""What `initialize` answers to a version it does not know."""

ASSUMED: Final = _2025_03_26
"""What a request without a version header speaks.

The header came with 2025-06-18, so that its absence means "before that".
"""

LATEST_MODERN: Final = _2026_07_28


def versions(era: Era | None = None) -> list[str]:
    """List the versions of one era, or of both, newest first.

    2024-11-05 is negotiated but not advertised: it is served as 2025-03-26.
    """
    return [
        version
        for version, revision in REVISIONS.items()
        if era in (None, revision.era) and revision is not _2024_11_05
    ]
