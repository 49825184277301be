"""The resources of a mock as they are at the moment, and what each step makes of them.

Pure: no I/O, no event loop.
"""

from __future__ import annotations

from toolpost.errors import ResourceNotFound
from toolpost.events import Error, ResourceListUpdated, ResourceUpdated
from toolpost.mock.params import ContentStep, ListStep, MockParams
from toolpost.model import ResourceContent, ResourceInfo
from toolpost.tooling.port import Change

NOT_FOUND = -32002


class Resources:
    """The list and the contents of one tooling, shared by all agents."""

    def __init__(self, tooling: str, params: MockParams) -> None:
        self._tooling = tooling
        self.listed = [each.info() for each in params.initial_resource_list]
        """What `list_resources` gives. Replaced as a whole."""
        self._contents = {
            uri: ResourceContent(uri=uri, mime_type=self._mime_type(uri), content=text)
            for uri, text in params.initial_resource_contents.items()
        }

    def read(self, uri: str) -> ResourceContent:
        """The content of a resource.

        Raises:
            ResourceNotFound: It has none, initial or applied.
        """
        if uri not in self._contents:
            known = ", ".join(repr(each) for each in sorted(self._contents)) or "none"
            raise ResourceNotFound(
                f"tooling {self._tooling!r}: read_resource {uri!r}: no content;"
                f" this mock has some for: {known}",
                code=NOT_FOUND,
            )
        return self._contents[uri]

    def change(self, step: ListStep | ContentStep) -> Change:
        """What a subscriber is told when the step fires."""
        if step.error is not None:
            what = "subscribe_resource_list"
            if isinstance(step, ContentStep):
                what = f"subscribe_resource {step.uri!r}"
            return Error(f"tooling {self._tooling!r}: {what}: {step.error}")
        if isinstance(step, ListStep):
            return ResourceListUpdated(_list_of(step))
        content = self._content_of(step)
        return ResourceUpdated(
            uri=content.uri,
            mime_type=content.mime_type,
            content=content.content,
            encoding=content.encoding,
        )

    def apply(self, step: ListStep | ContentStep) -> None:
        """What is listed and read from now on. A step that fails changes nothing."""
        if step.error is not None:
            return
        if isinstance(step, ListStep):
            self.listed = _list_of(step)
        else:
            self._contents[step.uri] = self._content_of(step)

    def _content_of(self, step: ContentStep) -> ResourceContent:
        return ResourceContent(
            uri=step.uri,
            mime_type=self._mime_type(step.uri),
            content=step.content or "",
            encoding=step.encoding,
        )

    def _mime_type(self, uri: str) -> str | None:
        """As the current list has it."""
        return next((each.mime_type for each in self.listed if each.uri == uri), None)


def _list_of(step: ListStep) -> list[ResourceInfo]:
    return [each.info() for each in step.resources or ()]


def unlisted(params: MockParams) -> list[tuple[int, str]]:
    """The steps of `resource_content_updates` whose URI no list ever names: their places and the URIs."""
    listed = {each.uri for each in params.initial_resource_list}
    for step in params.resource_list_updates:
        listed.update(each.uri for each in step.resources or ())
    return [
        (index, step.uri)
        for index, step in enumerate(params.resource_content_updates)
        if step.uri not in listed
    ]
