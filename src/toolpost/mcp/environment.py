"""Which environment a stdio server gets: a short list, what the config adds, and no more.

The host's other variables are not the server's business: they hold keys of other services.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from toolpost.config.environment import PREFIX
from toolpost.mcp.params import McpParams

_SAFE = (
    # what the official SDK's stdio transport passes on
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
     "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)  # fmt: skip
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)
_LOCALE = ("LANG", "LANGUAGE", "TZ")
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")

PASSED_ON = frozenset(
    (*_SAFE, *_NETWORK, *(name.lower() for name in _NETWORK), *_CERTIFICATES, *_LOCALE, *_TEMPORARY)
)

HINT = (
    "a server gets only a short list of toolpost's environment; if it misses a variable, give it with `env`"
    " or `inherit_env`"
)
"""For the error of a start that failed."""


def server_environment(params: McpParams, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a server's process. Its secrets leave their locked memory here."""
    inherit = params.inherit_env
    if inherit is True:
        # Not the config's own layer: it may hold what is another tooling's, such as its auth_token.
        passed = {name: value for name, value in environ.items() if not name.upper().startswith(PREFIX)}
    else:
        wanted = PASSED_ON | frozenset(inherit or ())
        passed = {
            name: value
            for name, value in environ.items()
            if (name in wanted or name.startswith("LC_")) and not value.startswith("()")  # no shell functions
        }
    return passed | {name: secret.expose() for name, secret in params.env.items()}
