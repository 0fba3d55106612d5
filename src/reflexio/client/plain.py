"""Connections that are kept open to one server over plain HTTP, for a client that waits and for one that awaits.

They raise what httpx raises, so that nothing above has to know who made the call.
"""

import asyncio
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Generic, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import httpx

from reflexio.client.http1 import END_OF_HEAD, TO_THE_END, Address, Need, Reply, receiving

MOST = 100
"""Connections at once; whoever comes later waits for one."""
IDLE_SECONDS = 60.0
"""Less than the server keeps one open: it must not close while a call is on its way."""
BLOCK = 1 << 18

NO_CONNECTION = "no connection in time"
NO_ANSWER = "no answer in time"
CUT_SHORT = "the connection ended before the answer did"


class _Reusable(Protocol):
    idle_since: float

    @property
    def is_open(self) -> bool: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=_Reusable)


class _Idle(Generic[C]):
    """Connections that nobody uses; the one that was used last is taken first."""

    def __init__(self) -> None:
        self._waiting: list[C] = []

    def take(self) -> C | None:
        while True:
            try:
                connection = self._waiting.pop()
            except IndexError:
                return None
            if connection.is_open and time.monotonic() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()

    def put(self, connection: C) -> None:
        connection.idle_since = time.monotonic()
        self._waiting.append(connection)

    def close(self) -> None:
        while self._waiting:
            self._waiting.pop().close()


class AsyncConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.idle_since = 0.0

    @classmethod
    async def open(cls, address: Address, seconds: float) -> Self:
        try:
            async with asyncio.timeout(seconds):
                return cls(*await asyncio.open_connection(address.host, address.port, limit=BLOCK))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(NO_CONNECTION) from error
        except (OSError, OverflowError) as error:  # no address has a port so high
            raise httpx.ConnectError(str(error)) from error

    @property
    def is_open(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def exchange(self, request: bytes, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(request)
        except TimeoutError as error:
            raise httpx.ReadTimeout(NO_ANSWER) from error
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise httpx.RemoteProtocolError(CUT_SHORT) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    async def _exchange(self, request: bytes) -> Reply:
        self._writer.write(request)
        with suppress(ConnectionError):  # a server that takes no more has said why
            await self._writer.drain()
        reading = receiving()
        need: Need = END_OF_HEAD
        next(reading)
        while True:
            try:
                need = reading.send(await self._read(need))
            except StopIteration as whole:
                return whole.value  # type: ignore[no-any-return]

    async def _read(self, need: Need) -> bytes:
        if isinstance(need, bytes):
            return await self._reader.readuntil(need)
        return await (self._reader.read() if need == TO_THE_END else self._reader.readexactly(need))

    def close(self) -> None:
        with suppress(RuntimeError):  # its loop is closed, and the connection with it
            self._writer.transport.abort()


class _Pool:
    def __init__(self) -> None:
        self.idle = _Idle[AsyncConnection]()
        self.places = asyncio.Semaphore(MOST)


class AsyncPlain:
    """The connections of an asynchronous client; each event loop has its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()

    async def send(self, request: bytes, seconds: float, connect_seconds: float) -> Reply:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop) or self._pools.setdefault(loop, _Pool())
        async with pool.places:
            connection = pool.idle.take() or await AsyncConnection.open(self.address, connect_seconds)
            try:
                reply = await connection.exchange(request, seconds)
            except BaseException:
                connection.close()
                raise
            if reply.is_last:
                connection.close()
            else:
                pool.idle.put(connection)
            return reply

    async def aclose(self) -> None:
        for pool in list(self._pools.values()):
            pool.idle.close()


class Connection:
    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read_ahead = bytearray()
        self._until, self._has_read = 0.0, False
        self.idle_since = 0.0

    @classmethod
    def open(cls, address: Address, seconds: float) -> Self:
        try:
            return cls(socket.create_connection((address.host, address.port), seconds))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(NO_CONNECTION) from error
        except (OSError, OverflowError) as error:  # no address has a port so high
            raise httpx.ConnectError(str(error)) from error

    @property
    def is_open(self) -> bool:
        """Nothing was asked, so whatever can be read is the end of the connection."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def exchange(self, request: bytes, seconds: float) -> Reply:
        try:
            self._until, self._has_read = time.monotonic() + seconds, False
            self._socket.settimeout(seconds)
            return self._exchange(request)
        except TimeoutError as error:
            raise httpx.ReadTimeout(NO_ANSWER) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    def _exchange(self, request: bytes) -> Reply:
        with suppress(ConnectionError):  # a server that takes no more has said why
            self._socket.sendall(request)
        reading = receiving()
        need: Need = END_OF_HEAD
        next(reading)
        while True:
            try:
                need = reading.send(self._read(need))
            except StopIteration as whole:
                return whole.value  # type: ignore[no-any-return]

    def _read(self, need: Need) -> bytes:
        if isinstance(need, bytes):
            while (at := self._read_ahead.find(need)) < 0:
                self._read_on()
            return self._taken(at + len(need))
        if need == TO_THE_END:
            with suppress(httpx.RemoteProtocolError):
                while True:
                    self._read_on()
            return self._taken(len(self._read_ahead))
        while len(self._read_ahead) < need:
            self._read_on()
        return self._taken(need)

    def _read_on(self) -> None:
        if self._has_read:  # most answers come in one piece; the pieces of others share the time
            self._socket.settimeout(max(self._until - time.monotonic(), 1e-6))
        self._has_read = True
        got = self._socket.recv(BLOCK)
        if not got:
            raise httpx.RemoteProtocolError(CUT_SHORT)
        self._read_ahead += got

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._read_ahead[:count])
        del self._read_ahead[:count]
        return taken

    def close(self) -> None:
        self._socket.close()


class Plain:
    """The connections of a synchronous client, which may be used by many threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle = _Idle[Connection]()
        self._places = threading.Semaphore(MOST)
        self._process = os.getpid()

    def send(self, request: bytes, seconds: float, connect_seconds: float) -> Reply:
        if self._process != os.getpid():
            self._begin_anew()
        with self._places:
            connection = self._idle.take() or Connection.open(self.address, connect_seconds)
            try:
                reply = connection.exchange(request, seconds)
            except BaseException:
                connection.close()
                raise
            if reply.is_last:
                connection.close()
            else:
                self._idle.put(connection)
            return reply

    def _begin_anew(self) -> None:
        """In a forked process: its parent goes on with the connections, and they cannot be shared."""
        self._process = os.getpid()
        self._places = threading.Semaphore(MOST)
        self._idle.close()

    def close(self) -> None:
        self._idle.close()
