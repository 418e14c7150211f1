"""Tests reach no network, unless they say that they open a socket on the loopback interface."""

import socket

import pytest
from pytest_socket import SocketBlockedError


@pytest.mark.filterwarnings("default:A test tried to use socket")
def test_sockets_are_forbidden() -> None:
    with pytest.raises(SocketBlockedError), pytest.warns(UserWarning, match="socket"):
        socket.socket()


@pytest.mark.network
def test_those_who_need_loopback_say_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[0] == "127.0.0.1"
