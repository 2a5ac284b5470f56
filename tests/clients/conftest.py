"""The server that the clients speak to."""

from collections.abc import Iterator

import pytest

from tests.clients.processes import serving


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    with serving("examples.everything:app") as address:
        yield address
