"""What holds on Citus, PostgreSQL on many servers: where `FOLDLINE_CITUS_URL` is the URL of a superuser at its coordinator."""

import os
from uuid import uuid4

import pytest

from blocks import MisuseError
from persistence import PostgresStore
from tests.persistence.contract import T, many

URL = os.environ.get("FOLDLINE_CITUS_URL", "")
pytestmark = [pytest.mark.network, pytest.mark.skipif(not URL, reason="no FOLDLINE_CITUS_URL")]


@pytest.fixture
def url() -> str:
    """The URL of a schema that is not there yet."""
    return f"{URL}?options=-csearch_path%3Dt{uuid4().hex}"


def test_a_tenant_is_refused_for_workers_do_not_know_it(url: str) -> None:
    with PostgresStore(url) as store:
        store.append(T, many(1), expected_version=0)
    for where, tenant in ((url, "acme"), (f"{url}%20-cfoldline.tenant%3Dacme", "")):
        with pytest.raises(
            MisuseError, match=r"do not know the tenant 'acme'.*a schema of its own"
        ):
            PostgresStore(where, tenant=tenant)
