"""Saving what a server gave: one content to a file, several side by side, or all into a folder.

A file that is named is the user's wish and is replaced. In a folder the server's words would choose the
name: there nothing is replaced, and no name starts with a dot or leads elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolpost.errors import ToolpostError, UsageError

_EXTENSIONS = {"application/json": ".json", "text/plain": ".txt", "image/jpeg": ".jpg", "audio/wav": ".wav"}
"""Where `mimetypes` knows several, or differs from system to system."""


@dataclass(frozen=True)
class Part:
    """Something to save."""

    data: bytes
    mime_type: str | None = None
    uri: str | None = None


class NotSaved(ToolpostError):
    """A file could not be written."""


def check_target(target: str | None) -> None:
    """Find out before anything is called whether there can be such a file.

    Raises:
        UsageError: There cannot.
    """
    if target in ("", "-"):
        raise UsageError(f"-o {target!r} is neither a file nor a folder; give one of them")
    if target is None or _is_folder(target):
        return
    folder = Path(target).parent
    if not folder.is_dir():
        raise UsageError(f"-o {target!r}: there is no folder {str(folder)!r}; create it first")


def save(parts: Sequence[Part], target: str, name: str) -> Iterator[Path]:
    """Write each part, and give the file that it went to.

    Args:
        parts: What to save. Several go to `shot.png`, `shot-2.png`, `shot-3.png`.
        target: A file, or a folder: one that exists, or with a slash at its end.
        name: What files in a folder are called where a part has no URI that says it.

    Raises:
        NotSaved: One could not be written; those before it are.
    """
    for number, part in enumerate(parts, start=1):
        try:
            if _is_folder(target):
                yield _into(Path(target), part, name)
            else:
                file = _numbered(Path(target), number)
                file.write_bytes(part.data)
                yield file
        except OSError as error:
            raise NotSaved(f"cannot save to {target!r}: {error.strerror or error}") from None


def parts_of(blocks: Sequence[Mapping[str, Any]]) -> list[Part]:
    """What can be saved of a result's content blocks: images, audio, embedded resources."""
    found: list[Part] = []
    for block in blocks:
        match block:
            case {"type": "image" | "audio", "data": str(data)}:
                found.append(Part(decoded(data), block.get("mimeType")))
            case {"type": "resource", "resource": dict()}:
                found += contents_of([cast("dict[str, Any]", block["resource"])])
            case _:
                pass
    return found


def contents_of(contents: Sequence[Mapping[str, Any]]) -> list[Part]:
    """What can be saved of a resource's contents, as MCP writes them."""
    found: list[Part] = []
    for content in contents:
        match content:
            case {"blob": str(blob)}:
                found.append(Part(decoded(blob), content.get("mimeType"), content.get("uri")))
            case {"text": str(text)}:
                data = text.encode("utf-8", "surrogatepass")
                found.append(Part(data, content.get("mimeType"), content.get("uri")))
            case _:
                pass
    return found


def decoded(text: str) -> bytes:
    """Base64 as bytes.

    Raises:
        NotSaved: It is none.
    """
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        raise NotSaved("the server sent binary that is no base64; --json shows it as it came") from None


# -- names -----------------------------------------------------------------------------------------


def _is_folder(target: str) -> bool:
    return target.endswith(("/", os.sep)) or Path(target).is_dir()


def _numbered(file: Path, number: int) -> Path:
    return file if number == 1 else file.with_name(f"{file.stem}-{number}{file.suffix}")


def _into(folder: Path, part: Part, name: str) -> Path:
    """Write under a name of its own, replacing nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    wished = folder / file_name(part, name)
    number = 1
    while True:
        file = _numbered(wished, number)
        try:
            with file.open("xb") as new:
                new.write(part.data)
            return file
        except FileExistsError:
            number += 1


def file_name(part: Part, name: str) -> str:
    """A harmless file name: of the URI's last part, else `name`, with the extension of the type."""
    last = (part.uri or "").rstrip("/").rpartition("/")[2].partition("?")[0].partition("#")[0]
    stem = re.sub(r"[^\w.-]+", "_", last).strip("._-")[:100] or re.sub(r"[^\w-]+", "_", name)
    return stem if Path(stem).suffix else f"{stem}{_extension(part.mime_type)}"


def _extension(mime_type: str | None) -> str:
    plain = (mime_type or "").partition(";")[0].strip().lower()
    return _EXTENSIONS.get(plain) or mimetypes.guess_extension(plain) or ""
