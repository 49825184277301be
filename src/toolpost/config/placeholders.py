"""Values that a config must not hold, turned into `${VAR}`; and editors' own variables, turned into ours.

Pure. What a value was is kept only to see whether two of them are the same, and never given away.

Environment values and headers are withheld whatever they are. In arguments and URLs, which are plain text
in every editor, withheld is what looks like a secret: after a word such as `--token`, in a URL's user part
or query, or by its own form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_ONLY_REFERENCES = re.compile(r"(?:\$\{(?![^}]*:-)[^}]+\})+")
_PLAIN = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)

_SECRET_WORD = re.compile(r"key|token|secret|passw|pwd|credential|auth|bearer|\bpat\b", re.IGNORECASE)
_FLAG = re.compile(r"--?[\w.-]+")
_ASSIGNED = re.compile(r"(?P<name>-{0,2}[\w.-]+)=(?P<value>.+)", re.DOTALL)
_HEADER = re.compile(r"(?P<name>[\w-]+):\s*(?P<scheme>(?:Bearer|Basic|Token)\s+)?(?P<value>\S.*)", re.DOTALL)
_OPAQUE = re.compile(
    r"(?:sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ)[\w.+/=-]{8,}"
    r"|(?=[\w=+-]*\d)(?=[\w=+-]*[A-Za-z])[\w=+-]{24,}"
)
_USER = re.compile(r"(?<=://)(?P<user>[^/@?#\s]*)@")
_QUERY = re.compile(r"(?<=[?&;])(?P<name>[^=&;#]+)=(?P<value>[^&;#]+)")

Identity: TypeAlias = tuple[str, str]
"""What a variable stands for: `("env", name)`, `("input", id)`, `("value", the value itself)`."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the imported config names."""

    name: str
    where: str
    """The key that it is for, dotted."""
    about: str = ""


class Placeholders:
    """The variables of one import.

    Args:
        environ: The environment: a name that has another value there is not taken for a withheld value.
        workspace: What `${workspaceFolder}` stands for.
        prompts: By id, how the editor asks for an input.
        texts: Every text of the file: names that it refers to itself are not taken for anything else.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        workspace: str | None,
        prompts: Mapping[str, str],
        texts: Iterable[str],
    ) -> None:
        self.variables: dict[str, Variable] = {}
        self._environ = environ
        self._workspace = workspace
        self._prompts = prompts
        self._taken: dict[str, Identity] = {}
        for inside in (match[1] for text in texts for match in _REFERENCE.finditer(text)):
            kind, name = _meaning(inside)
            if kind == "env":
                self._taken[name] = (kind, name)

    def secret(self, key: str, value: str, *, owner: str, where: str, about: str = "") -> str:
        """What stands in the config for a value that may be a secret.

        Args:
            key: What it is called; the variable is named after it.
            value: The value.
            owner: The tooling, for the variable's name where that of the key is taken.
            where: The key of the config.
            about: What to set the variable to, where that is not the value as it was.
        """
        if not value or _ONLY_REFERENCES.fullmatch(value):
            return self.text(value, where=where)
        return self._place(key, ("value", value), owner=owner, where=where, about=about)

    def text(self, text: str, *, where: str) -> str:
        """A text whose references are ours, and every other `${` a literal one."""
        parts: list[str] = []
        at = 0
        for match in _REFERENCE.finditer(text):
            parts += [_literal(text[at : match.start()]), self._reference(match[1], where)]
            at = match.end()
        return "".join([*parts, _literal(text[at:])])

    def arguments(self, args: Sequence[str], *, owner: str, where: str) -> list[str]:
        """Arguments without what looks like a secret."""
        given: list[str] = []
        flag = ""
        for at, arg in enumerate(args):
            here = f"{where}[{at}]"
            if flag and not arg.startswith("-"):
                given.append(self.secret(flag, arg, owner=owner, where=here))
            else:
                given.append(self._argument(arg, owner, here))
            flag = arg if _FLAG.fullmatch(arg) and _SECRET_WORD.search(arg) else ""
        return given

    def url(self, url: str, *, owner: str, where: str) -> str:
        """A URL (or a text with one) without its password, and without what looks like a secret."""

        def user(match: re.Match[str]) -> str:
            name, colon, password = match["user"].partition(":")
            key = "password" if colon else "user"
            held = self.secret(key, password if colon else name, owner=owner, where=where)
            return f"{name}:{held}@" if colon else f"{held}@"

        def parameter(match: re.Match[str]) -> str:
            if not (_SECRET_WORD.search(match["name"]) or _OPAQUE.fullmatch(match["value"])):
                return self.text(match[0], where=where)
            return f"{match['name']}={self.secret(match['name'], match['value'], owner=owner, where=where)}"

        def segment(part: str) -> str:
            if _OPAQUE.fullmatch(part):
                return self.secret(f"{owner}_url", part, owner=owner, where=where)
            return self.text(part, where=where)

        before, mark, after = url.partition("?")
        lead = _USER.match(before, before.find("://") + 3) if "://" in before else None
        path = before[lead.end() if lead else 0 :]
        start = before[: lead.start()] + user(lead) if lead else ""
        return start + "/".join(map(segment, path.split("/"))) + _QUERY.sub(parameter, mark + after)

    def _argument(self, arg: str, owner: str, where: str) -> str:
        for found in (_ASSIGNED.fullmatch(arg), _HEADER.fullmatch(arg)):
            if found and _SECRET_WORD.search(found["name"]):
                held = self.secret(found["name"], found["value"], owner=owner, where=where)
                return arg[: found.start("value")] + held
        if "://" in arg:
            return self.url(arg, owner=owner, where=where)
        if _OPAQUE.fullmatch(arg):
            return self.secret(f"{owner}_token", arg, owner=owner, where=where)
        return self.text(arg, where=where)

    def _reference(self, inside: str, where: str) -> str:
        kind, name = _meaning(inside)
        match kind:
            case "workspace" if self._workspace is not None:
                return _literal(self._workspace)
            case "separator":
                return "/"
            case "env":
                plain = _PLAIN.fullmatch(inside)
                if plain and plain["default"] and not _SECRET_WORD.search(name):
                    return f"${{{inside}}}"
                return self._named(name, ("env", name), where, "")
            case "input":
                about = self._prompts.get(name, "")
                return self._place(name, ("input", name), owner="input", where=where, about=about)
            case _:
                about = (
                    f"the editor's own ${{{inside}}}" if inside.isprintable() else "an editor's own variable"
                )
                return self._place(name, (kind, name), owner="editor", where=where, about=about)

    def _place(self, key: str, identity: Identity, *, owner: str, where: str, about: str) -> str:
        """A variable for `identity`: one that it has already, or a new one that is named after `key`."""
        name, prefix = variable_name(key), variable_name(owner)
        number = 1
        candidate = name
        while not self._is_free(candidate, identity):
            candidate = f"{prefix}_{name}" + (f"_{number}" if number > 1 else "")
            number += 1
        return self._named(candidate, identity, where, about)

    def _is_free(self, name: str, identity: Identity) -> bool:
        if name in self._taken:
            return self._taken[name] == identity
        kind, value = identity
        # there already with another value: the server would silently get that one
        return kind != "value" or self._environ.get(name, value) == value

    def _named(self, name: str, identity: Identity, where: str, about: str) -> str:
        self._taken[name] = identity
        self.variables.setdefault(name, Variable(name, where, about))
        return f"${{{name}}}"


def variable_name(key: str) -> str:
    """A key as the name of an environment variable: `--api-key` is `API_KEY`."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", key).strip("_").upper() or "VALUE"
    return f"_{name}" if name[0].isdigit() else name


def _meaning(inside: str) -> Identity:
    """What a reference of an editor stands for."""
    scope, colon, rest = inside.partition(":")
    match scope:
        case "env" if colon and rest:
            plain = _PLAIN.fullmatch(rest)
            return "env", plain["name"] if plain else variable_name(rest)
        case "input" if colon and rest:
            return "input", rest
        case "workspaceFolder" | "workspaceRoot":
            return "workspace", "workspace_folder"
        case "userHome" if not colon:
            return "env", "HOME"
        case "pathSeparator" | "/" if not colon:
            return "separator", "/"
        case _:
            plain = _PLAIN.fullmatch(inside)
            return ("env", plain["name"]) if plain else ("editor", inside)


def _literal(text: str) -> str:
    return text.replace("${", "$${")
