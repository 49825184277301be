"""One HTTP endpoint: how requests get there, and what may go with them. Brings aiohttp with it.

Credentials, session ids and bodies go to the configured origin and nowhere else: a redirect is followed by
hand, within that origin, and only where it keeps the method. This file knows HTTP, and nothing of JSON-RPC.
"""

from __future__ import annotations

import asyncio
import errno
import io
import ipaddress
import os
import ssl
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from toolpost.mcp.in_thread import in_thread
from toolpost.mcp.params import McpParams
from toolpost.secret import get_logger

CONNECT_SECS = 30.0
DESCRIPTOR_SECS = 0.05
"""Between attempts to connect where this process may open no more; what others are done with is closed."""
MAX_REDIRECTS = 5
ENCODINGS = ("gzip", "deflate")
"""Offered to the server."""
_DECODED = {"", "identity", "br", "zstd", *ENCODINGS}
"""What aiohttp decodes, or refuses by itself where the library for it is missing."""

_USER_AGENT = f"toolpost/{version('toolpost')}"
_TURNS_TO_NOTICE = 2
"""Turns of the loop before a request: so many it takes to notice that a connection which was kept has been
closed from the other side. A request that goes out on such a one is lost, and nobody can say whether it was
executed; this way only what is closed at that very moment is missed."""
KEPT_SECS = 4.0
"""How long a connection is kept that is not used. Less than most servers keep one, which is 5 s or more: what
they close at the moment in which a request goes out is lost."""
_LARGE = 1 << 20
"""From here on aiohttp wants a file, which it sends in pieces."""

_log = get_logger("toolpost.mcp")


class Unreachable(Exception):
    """No connection could be made: nothing was sent."""


class Broken(Exception):
    """The connection broke before the answer was whole: whether the request took effect is unknown."""


class BadEndpoint(Exception):
    """What answers there is no MCP server, or is one at another URL."""


class TooLarge(Exception):
    """An answer is longer than it may be."""


class Endpoint:
    """Where a server is reached. Opened and closed in one event loop."""

    def __init__(self, params: McpParams) -> None:
        self._params = params
        self._url = URL(params.url or "")
        self._sessions: list[aiohttp.ClientSession] = []
        """Requests go out on the last one; on another there may still be streams."""
        self._tls: ssl.SSLContext | bool = True
        self._proxy: URL | None = None
        self._proxy_headers: dict[str, str] = {}
        self._has_warned = False

    def __str__(self) -> str:
        return shown(self._url)

    async def open(self) -> None:
        """Prepare to send; connects nowhere yet.

        Raises:
            BadEndpoint: The environment names a proxy that cannot be used.
        """
        self._proxy, self._proxy_headers = proxy_for(self._url)
        # Reads the certificates anew, so that SSL_CERT_FILE counts as it is now. It takes a while.
        if self._is_tls:
            self._tls = await in_thread(ssl.create_default_context)
        self._sessions.append(self._open_session(keep=True))

    def _open_session(self, *, keep: bool) -> aiohttp.ClientSession:
        kept: dict[str, Any] = {"keepalive_timeout": KEPT_SECS} if keep else {"force_close": True}
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, **kept),  # no limit may starve a call
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECS),
            trust_env=False,  # it would read ~/.netrc too, and send what stands there
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for session in self._sessions:
            await session.close()

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        """The answer, as far as its headers; `close` it.

        Raises:
            Unreachable: Nothing was sent.
            Broken: It may have been.
            BadEndpoint: A redirect was not followed, or the certificate is not trusted.
        """
        for _ in range(_TURNS_TO_NOTICE):
            await asyncio.sleep(0)
        url = self._url
        for _ in range(MAX_REDIRECTS):
            while (response := await self._send_once(method, url, headers, body)) is None:  # noqa: ASYNC110
                await asyncio.sleep(
                    DESCRIPTOR_SECS
                )  # nothing tells when another part of the program closes one
            location = response.headers.get("Location")
            if location is None or response.status not in (301, 302, 303, 307, 308):
                return response
            response.release()
            url = self._redirected(response, location)
        raise BadEndpoint(f"redirects more than {MAX_REDIRECTS} times, last to {shown(url)}")

    async def _send_once(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse | None:
        """None: nothing was sent, since no file descriptor is left. That is no fault of the server's."""
        session = self._sessions[-1]
        try:
            return await session.request(
                method,
                url,
                headers=self._headers(headers),
                data=io.BytesIO(body) if body is not None and len(body) > _LARGE else body,
                allow_redirects=False,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers if self._is_tls else None,
            )
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch) as error:
            raise BadEndpoint(f"has a certificate that is not trusted: {_reason(error)}") from None
        except aiohttp.InvalidURL:
            raise BadEndpoint("has a URL that cannot be used") from None
        except aiohttp.ClientHttpProxyError as error:
            raise Unreachable(
                f"cannot be reached: the proxy answered HTTP {error.status} {error.message}"
            ) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            if _lacks_descriptors(error):
                self._warn_of_descriptors()
                return None
            raise Unreachable(f"cannot be reached at {self}: {_reason(error)}") from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            is_closed = isinstance(error, aiohttp.ServerDisconnectedError | OSError)
            if is_closed and len(self._sessions) == 1:
                # A server that closes what is kept takes one request with it, and no other.
                self._sessions.append(self._open_session(keep=False))
            raise Broken(_how_it_broke(error)) from None
        except RuntimeError:  # "Session is closed"
            raise Broken("was left while it was asked") from None

    def _warn_of_descriptors(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning("no file descriptor is left (`ulimit -n`): requests to %s wait for one", self)

    def _headers(self, more: Mapping[str, str]) -> CIMultiDict[str]:
        """The headers of one request. Here the secrets leave their locked memory."""
        headers = CIMultiDict({name: secret.expose() for name, secret in self._params.headers.items()})
        if self._params.auth_token is not None:
            headers["Authorization"] = f"Bearer {self._params.auth_token.expose()}"
        headers.setdefault("User-Agent", _USER_AGENT)
        headers["Accept-Encoding"] = ", ".join(ENCODINGS)
        if not self._is_tls:
            headers.update(self._proxy_headers)  # read by the proxy; over TLS it gets a request of its own
        headers.update(more)
        return headers

    def _redirected(self, response: aiohttp.ClientResponse, location: str) -> URL:
        try:
            target = response.url.join(URL(location))
            same_origin = target.origin() == self._url.origin()
        except ValueError:
            raise BadEndpoint(f"redirects (HTTP {response.status}) to what is no URL") from None
        if not same_origin:
            where = f"redirects (HTTP {response.status}) to another origin, {shown(target)}"
            raise BadEndpoint(f"{where}; if that is the server, make it the `url`")
        if response.status not in (307, 308):
            where = (
                f"redirects with HTTP {response.status}, which does not keep the request, to {shown(target)}"
            )
            raise BadEndpoint(f"{where}; make that the `url`")
        return target

    @property
    def _is_tls(self) -> bool:
        return self._url.scheme == "https"


async def next_chunk(response: aiohttp.ClientResponse) -> bytes:
    """What comes next of the body, decoded; empty at its end.

    Raises:
        Broken: It ends before its end, or cannot be decoded.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _DECODED:
        raise Broken(f"answered in the encoding {encoding!r}, which it was not offered")
    try:
        return await response.content.readany()
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Broken(_how_it_broke(error, encoding)) from None


async def read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The whole body.

    Raises:
        Broken: It is not whole.
        TooLarge: It is longer than `max_bytes`.
    """
    pieces: list[bytes] = []
    size = 0
    while chunk := await next_chunk(response):
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge
        pieces.append(chunk)
    return b"".join(pieces)


def proxy_for(url: URL) -> tuple[URL | None, dict[str, str]]:
    """The proxy that the environment names for a URL, and the headers that let us through it.

    `NO_PROXY` counts, and loopback is reached directly in any case: there a proxy cannot know it.

    Raises:
        BadEndpoint: It is one that aiohttp cannot use.
    """
    host = url.host or ""
    if _is_loopback(host) or proxy_bypass(f"{host}:{url.port}") or proxy_bypass(host):
        return None, {}
    proxies = getproxies()
    text = proxies.get(url.scheme) or proxies.get("all")
    if not text:
        return None, {}
    proxy = URL(text if "://" in text else f"http://{text}")
    if proxy.scheme not in ("http", "https"):
        raise BadEndpoint(f"cannot be reached: the environment names a {proxy.scheme} proxy; use an HTTP one")
    if proxy.user is None:
        return proxy, {}
    credentials = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), {"Proxy-Authorization": credentials}


def shown(url: URL) -> str:
    """A URL for a text: what may hold a secret is left out."""
    return str(url.with_user(None).with_query(None).with_fragment(None))


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _how_it_broke(error: BaseException, encoding: str = "") -> str:
    match error:
        case aiohttp.ServerDisconnectedError():
            return "closed the connection without an answer"
        case aiohttp.ClientPayloadError() if encoding not in ("", "identity"):
            return f"sent an answer that is incomplete, or is not in its encoding ({encoding})"
        case aiohttp.ClientPayloadError():
            return "sent an answer that ends too early"
        case aiohttp.ClientResponseError():
            return f"sent an answer that is no HTTP, or cannot be decoded: {error.message}"
        case _:
            return f"broke the connection: {_reason(error)}"


def _lacks_descriptors(error: Exception) -> bool:
    """Read off its text: where several addresses were tried there is no number."""
    return any(os.strerror(number) in str(error) for number in (errno.EMFILE, errno.ENFILE))


def _reason(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    return getattr(inner, "strerror", None) or str(inner) or type(error).__name__
