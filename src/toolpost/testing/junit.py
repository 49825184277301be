"""A run as JUnit XML, which CI systems read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from xml.etree import ElementTree

from toolpost.testing.discover import SUFFIX
from toolpost.testing.result import Result
from toolpost.testing.tally import Tally

_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot carry, not even as a reference."""


def write_junit(path: Path, results: Sequence[Result], *, not_run: Sequence[str] = ()) -> None:
    """Write the report.

    Args:
        path: The file; it is replaced.
        results: What came of each case.
        not_run: The names of the cases whose turn did not come.

    Raises:
        OSError: It cannot be written.
    """
    tally = Tally.of(results, not_run=len(not_run), seconds=sum(each.seconds for each in results))
    suite = ElementTree.Element(
        "testsuite",
        name="toolpost",
        tests=str(len(results) + tally.not_run),
        failures=str(tally.failed),
        errors=str(tally.errors),
        skipped=str(tally.not_run),
        time=f"{tally.seconds:.3f}",
    )
    suite.extend(_case(each) for each in results)
    for name in not_run:
        ElementTree.SubElement(_named(suite, name), "skipped", message="not run")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _case(result: Result) -> ElementTree.Element:
    parent = ElementTree.Element("testsuite")
    case = _named(parent, result.case)
    case.set("time", f"{result.seconds:.3f}")
    if result.status != "passed":
        what = "failure" if result.status == "failed" else "error"
        message = _carried("; ".join(result.failures))
        ElementTree.SubElement(case, what, message=message).text = _carried(result.report)
    if result.output:
        ElementTree.SubElement(case, "system-out").text = _carried(result.output)
    return case


def _named(parent: ElementTree.Element, name: str) -> ElementTree.Element:
    """A case by its path: CI systems show the class's name as the folder, and the name below it."""
    path = PurePath(name)
    folder = [part for part in path.parent.parts if part not in (path.anchor, "..")]
    return ElementTree.SubElement(
        parent,
        "testcase",
        classname=_carried(".".join(folder)),
        name=_carried(path.name.removesuffix(SUFFIX)),
        file=_carried(name),
    )


def _carried(text: str) -> str:
    return _REFUSED.sub("\N{REPLACEMENT CHARACTER}", text)
