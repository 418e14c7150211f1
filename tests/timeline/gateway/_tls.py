"""A provider behind TLS whose certificate is of an authority that nobody else knows, and a proxy that leads to it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "provider.example"
"""A name that the certificate has, besides 127.0.0.1, and that leads nowhere without the proxy."""
BEGIN, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


@attrs.frozen
class Authority:
    """A certificate authority, and files of what it has issued: certificate and key in one."""

    folder: Path
    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls, folder: Path) -> "Authority":
        common = f"the authority of {folder.name}"
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _built(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        made = cls(folder, name, key, certificate.sign(key, hashes.SHA256()))
        made.file.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
        return made

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def hashed_folder(self) -> Path:
        """A folder with the certificate under the name by which OpenSSL looks for it."""
        subject = self.name.public_bytes()[2:]  # its items, as they are in lower case already
        number = int.from_bytes(sha1(subject).digest()[:4], "little")  # noqa: S324 -- OpenSSL's
        folder = self.folder / "certificates"
        folder.mkdir()
        (folder / f"{number:08x}.0").write_bytes(self.file.read_bytes())
        return folder

    def issued(self, common: str, password: bytes | None = None) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
        names = [x509.DNSName(HOST), x509.IPAddress(ip_address("127.0.0.1"))]
        certificate = (
            _built(own, self.name, key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        hiding = (
            serialization.BestAvailableEncryption(password)
            if password
            else serialization.NoEncryption()
        )
        pem = serialization.Encoding.PEM
        form = serialization.PrivateFormat.PKCS8
        path = self.folder / f"{common}.pem"
        path.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, form, hiding))
        return path


def _built(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(BEGIN + timedelta(days=36_500))
    )


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Tell nobody of refused handshakes."""

    def shutdown_request(self, request: Any) -> None:
        """Close a connection after the client, so that it always gets to read why it was refused."""
        with socket.socket(fileno=request.detach()) as plain, suppress(OSError):
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(65_536):
                pass


@contextmanager
def tls_provider(authority: Authority, *, asks_who: bool = False) -> Iterator[int]:
    """The port of a server that answers GET; with `asks_who`, only those who show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issued("provider"))
    if asks_who:
        context.load_verify_locations(authority.file)
        context.verify_mode = ssl.CERT_REQUIRED
    server = _Server(("127.0.0.1", 0), _Answer)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def tunnel(port: int) -> Iterator[tuple[str, list[str]]]:
    """The URL of a proxy that leads every CONNECT to this port, answers every GET itself, and what it was asked for."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=_open, args=(door, port, asked), daemon=True).start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}", asked


def _open(door: socket.socket, port: int, asked: list[str]) -> None:
    with suppress(OSError):  # the door is closed
        while True:
            near, _ = door.accept()
            asked.append(near.recv(65_536).split(b"\r\n")[0].decode())
            if not asked[-1].startswith("CONNECT"):
                near.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", port))
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pumped, args=(one, other), daemon=True).start()


def _pumped(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
