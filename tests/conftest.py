"""Fixtures and hypothesis profiles that all tests share."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.services import postgres_binaries, postgres_server

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("ci", parent=settings.get_profile("default"), max_examples=600)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server of our own."""
    binaries = postgres_binaries()
    if binaries is None:
        reason = "PostgreSQL is not installed"
        if os.environ.get("LOOPGUARD_REQUIRE_SERVICES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with postgres_server(binaries) as url:
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_url: str) -> str:
    """URL of a new, empty database."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_url.rsplit("/", 1)[0] + f"/{name}"
