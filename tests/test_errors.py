"""The tree of exceptions: it is whole, and its errors reach other processes as they are."""

from __future__ import annotations

import copy
import pickle

import pytest

from toolpost import errors
from toolpost.errors import ToolpostError

SAMPLES = [
    errors.ConfigError(["one", "two"]),
    errors.UsageError("wrong"),
    errors.UnknownTooling("wbe", ["web", "files"]),
    errors.Unsupported("no"),
    errors.ServerError("tooling 'x': call_tool 'y': no", code=-32602, data={"uri": "a"}),
    errors.ResourceNotFound("none", code=-32002),
    errors.ConnectFailed("cannot", attempts=3),
    errors.ConnectionLost("gone"),
    errors.RequestTimeout("late"),
    errors.RecvTimeout("nothing"),
    errors.TooManyOpenCalls("full"),
    errors.HostClosed("closed"),
    errors.GuestFailed("trapped"),
    errors.ScriptError("step 1 of 2"),
]


def test_every_error_of_the_tree_has_a_sample() -> None:
    tree = {
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ToolpostError)
    }

    assert {type(sample) for sample in SAMPLES} == tree - {ToolpostError}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_of_a_pickle_and_a_copy_as_it_was(error: ToolpostError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
        assert other.args == error.args
