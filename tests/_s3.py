"""A real S3 server for the tests: moto's, on a loopback port, with buckets in memory, gone afterwards.

Run as a program it is the server, which does what it reads from its standard input and ends with it, so also when the
tests were killed.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from threading import Thread
from typing import IO, Any, Final

import attrs

NEEDED: Final = ("moto", "flask", "flask_cors", "obstore")
KEYS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "topsecret123"}


def missing() -> list[str]:
    """What is not installed of what this needs."""
    return [name for name in NEEDED if find_spec(name) is None]


@attrs.define
class Bucket:
    """A bucket of its own, in the server that the environment names."""

    url: str
    _server: subprocess.Popen[str]

    def requests(self) -> int:
        """How many requests the server has had."""
        return int(self._told("requests"))

    def deny(self, *actions: str) -> None:
        """From now on, nobody may do this, for example `s3:PutObject`."""
        self._told("deny", self._name, *actions)

    def remove(self) -> None:
        """The bucket and what is in it are gone."""
        self._told("remove", self._name)

    def stop(self) -> None:
        """The server is gone."""
        self._server.kill()
        self._server.wait()

    @property
    def _name(self) -> str:
        return self.url.split("/")[2]

    def _told(self, *command: str) -> str:
        return _told(self._server, *command)


def _told(server: subprocess.Popen[str], *command: str) -> str:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(" ".join(command) + "\n")
    server.stdin.flush()
    return server.stdout.readline().strip()


@contextmanager
def running() -> Iterator[tuple[str, Iterator[Bucket]]]:
    """The endpoint of a server, and new buckets."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # one line for each request
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests
    ) as server:
        assert server.stdout is not None
        endpoint = server.stdout.readline().strip()
        assert endpoint, "the S3 server did not start"
        names = (f"bucket-{number}" for number in count())
        made = ((_told(server, "make", name), name)[1] for name in names)
        yield endpoint, (Bucket(f"s3://{name}/artifacts", server) for name in made)
        server.kill()


class _Counted:
    """The application, and how many requests it had."""

    def __init__(self, application: Any) -> None:
        self.requests = 0
        self._application = application

    def __call__(self, environ: Any, start: Any) -> Iterable[bytes]:
        self.requests += 1
        answer: Iterable[bytes] = self._application(environ, start)
        return answer


def _main(commands: IO[str], answers: IO[str]) -> None:
    import boto3  # type: ignore[import-untyped]  # it ships no types
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = _Counted(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.port}"
    s3 = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    answers.write(f"{endpoint}\n")
    answers.flush()
    for line in commands:
        answer = str(application.requests)
        match line.split():
            case ["make", bucket]:
                s3.create_bucket(Bucket=bucket)
            case ["deny", bucket, *actions]:
                rule = {"Effect": "Deny", "Principal": "*", "Action": actions}
                rule["Resource"] = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
                policy = json.dumps({"Version": "2012-10-17", "Statement": [rule]})
                s3.put_bucket_policy(Bucket=bucket, Policy=policy)
            case ["remove", bucket]:
                for found in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
                    s3.delete_object(Bucket=bucket, Key=found["Key"])
                s3.delete_bucket(Bucket=bucket)
            case _:
                pass  # it asks how many requests there were
        answers.write(f"{answer}\n")
        answers.flush()


if __name__ == "__main__":
    _main(sys.stdin, sys.stdout)
