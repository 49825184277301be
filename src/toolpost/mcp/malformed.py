"""What pydantic finds wrong with a message, told without the message. Brings the SDK's pydantic with it.

Its own text quotes the value, and cuts a long one in the middle: of a secret in there a piece would be left
that masking no longer finds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pydantic import ValidationError


def problem(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"


class WithoutInput(logging.Filter):
    """Takes the quoted values out of what a log record says of a `ValidationError`. It lets all pass.

    Where that error is all there is, its traceback goes too: it leads through the SDK, and says nothing of
    the server that sent what is malformed.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_plain(each) for each in record.args)
        if record.exc_info and isinstance(error := record.exc_info[1], ValidationError):
            record.msg, record.args = f"{record.getMessage()}: {problem(error)}", ()
            record.exc_info = None
        elif record.exc_info and any(
            isinstance(each, ValidationError) for each in _chain(record.exc_info[1])
        ):
            record.exc_text = _traceback(record.exc_info[1])
            record.exc_info = None
        return True

    @classmethod
    def put_on(cls, logger: logging.Logger) -> None:
        """Put one on a logger (once), before the filter that masks."""
        if not any(isinstance(each, cls) for each in logger.filters):
            logger.filters.insert(0, cls())


def _plain(value: object) -> object:
    return problem(value) if isinstance(value, ValidationError) else value


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those behind it, which a traceback shows too."""
    todo, seen = [error], set[int]()
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            todo += each.exceptions  # pyright: ignore[reportUnknownMemberType]: of whatever it groups


def _traceback(error: BaseException | None) -> str:
    assert error is not None
    text = logging.Formatter().formatException((type(error), error, error.__traceback__))
    for each in _chain(error):
        for line in str(each).splitlines() if isinstance(each, ValidationError) else ():
            told, quotes, _ = line.strip().partition(" [type=")  # and then the value
            if quotes:
                text = text.replace(line.strip(), told)
    return text
