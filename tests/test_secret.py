"""Secrets stay in locked memory, and out of every text."""

from __future__ import annotations

import base64
import copy
import ctypes
import gc
import json
import logging
import mmap
import os
import pickle
import re
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost import secret as module
from toolpost.errors import UsageError
from toolpost.secret import MaskingFilter, Secret, get_logger, mask, mask_json

arena: Any = module._arena  # pyright: ignore[reportPrivateUsage]  # to look at the bytes themselves

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

any_text = st.text(st.characters(codec=None, exclude_categories=()))
secret_text = st.text(st.characters(codec=None, exclude_categories=()), min_size=8)


def block_of(secret: Secret) -> Any:
    return secret._block  # pyright: ignore[reportPrivateUsage]  # as above


def address_of(secret: Secret) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(block_of(secret).all))


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a child process that must say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(module.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done


class TestSecret:
    def test_it_gives_its_text_to_expose(self) -> None:
        assert Secret("hunter2").expose() == "hunter2"

    @given(any_text)
    def test_expose_gives_any_text_back_exactly(self, text: str) -> None:
        assert Secret(text).expose() == text

    @pytest.mark.parametrize("spec", ["", "s", "r", ">40", "10d", "no such thing"])
    def test_no_format_gives_it_away(self, spec: str) -> None:
        secret = Secret("hunter2")

        assert format(secret, spec) == "Secret('***')"

    def test_repr_str_and_percent_do_not_give_it_away(self) -> None:
        secret = Secret("hunter2")

        shown = f"{secret!r} {secret!s} {secret!a}" + " %s %r" % (secret, secret)  # noqa: UP031  # the other way

        assert shown == " ".join(["Secret('***')"] * 5)

    def test_json_refuses_it(self) -> None:
        for encode in (json.dumps, msgspec.json.encode, msgspec.to_builtins):
            with pytest.raises(TypeError) as caught:
                encode({"token": Secret("hunter2")})
            assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_pickle_refuses_it(self, protocol: int) -> None:
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(Secret("hunter2"), protocol)

    def test_copies_are_refused(self) -> None:
        for copied in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="copied"):
                copied(Secret("hunter2"))

    def test_it_equals_another_with_the_same_text_and_nothing_else(self) -> None:
        secret = Secret("hunter2")

        assert secret == Secret("hunter2")
        assert secret != Secret("hunter3")
        assert secret != Secret("hunter")
        assert secret != "hunter2"
        assert secret != b"hunter2"

    def test_it_has_no_hash_and_no_length(self) -> None:
        secret: Any = Secret("hunter2")

        with pytest.raises(TypeError):
            hash(secret)
        with pytest.raises(TypeError):
            len(secret)

    def test_only_an_empty_one_is_false(self) -> None:
        assert Secret("x")
        assert not Secret("")

    def test_it_is_made_from_a_string_only_and_says_so_without_the_value(self) -> None:
        wrong: Any = b"hunter2"

        with pytest.raises(TypeError, match=r"made from a str, not from bytes$"):
            Secret(wrong)

    def test_wiped_it_is_gone_for_good(self) -> None:
        secret, other = Secret("hunter2hunter2"), Secret("hunter2hunter2")

        secret.wipe()
        secret.wipe()

        with pytest.raises(UsageError, match="wiped"):
            secret.expose()
        assert not secret
        assert secret != other
        assert secret == secret, "nothing but itself"
        assert mask("hunter2hunter2") == "***", "the other one lives"


class TestMemory:
    def test_its_bytes_are_overwritten_when_it_is_dropped(self) -> None:
        secret = Secret("wiped-when-dropped")
        memory = block_of(secret).all
        assert bytes(memory).startswith(b"wiped-when-dropped")

        del secret

        assert bytes(memory) == bytes(len(memory))

    def test_its_bytes_are_overwritten_when_it_is_wiped(self) -> None:
        secret = Secret("wiped-when-told-to")
        memory = block_of(secret).all

        secret.wipe()

        assert bytes(memory) == bytes(len(memory))

    def test_one_that_is_dropped_while_the_arena_is_busy_is_wiped_afterwards(self) -> None:
        """The garbage collector may drop a secret in the middle of a change, on the same thread."""
        secret = Secret("dropped-meanwhile")
        memory = block_of(secret).all

        with arena._changing():
            del secret
            assert bytes(memory).startswith(b"dropped-meanwhile")

        assert bytes(memory) == bytes(len(memory))

    def test_a_thousand_fit_into_the_64_kib_that_containers_allow(self) -> None:
        pages = {id(chunk) for chunk in arena._chunks}

        secrets = [Secret(f"a-token-of-20-chars{number:04}") for number in range(1000)]

        used = {id(block_of(each).chunk): block_of(each).chunk.size for each in secrets}
        assert sum(used.values()) <= 64 * 1024 + mmap.PAGESIZE * len(pages)
        assert all(each.locked for each in secrets)

    def test_the_space_of_dropped_secrets_is_used_again(self) -> None:
        gc.collect()
        for _ in range(100):
            held = [Secret(f"used-again-and-again-{number}") for number in range(100)]
            del held
        before = len(arena._chunks)

        for _ in range(100):
            held = [Secret(f"used-again-and-again-{number}") for number in range(100)]
            del held

        assert len(arena._chunks) == before

    def test_one_larger_than_a_page_has_pages_of_its_own(self) -> None:
        text = "large" * mmap.PAGESIZE

        secret = Secret(text)

        assert secret.expose() == text
        assert mask(f"<{text}>") == "<***>"

    @linux
    def test_its_page_is_locked_and_left_out_of_core_dumps(self) -> None:
        secret = Secret("look-me-up-in-smaps")
        address = address_of(secret)

        flags = locked = ""
        inside = False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if bounds := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
            elif inside and line.startswith("VmFlags:"):
                flags = line
            elif inside and line.startswith("Locked:"):
                locked = line

        assert " lo" in flags
        assert " dd" in flags
        assert int(locked.split()[1]) >= 4

    @linux
    def test_the_kernel_counts_the_locked_pages(self) -> None:
        secret = Secret("counted-by-the-kernel")

        (line,) = re.findall(r"VmLck:\s+(\d+) kB", Path("/proc/self/status").read_text())

        assert secret.locked
        assert int(line) * 1024 >= mmap.PAGESIZE

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    def test_a_forked_child_has_a_copy_of_its_own(self) -> None:
        done = run_python(
            "import os, warnings\n"
            "from toolpost.secret import Secret, mask\n"
            "secret = Secret('shared-with-a-child')\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    assert mask('shared-with-a-child') == '***'\n"
            "    secret.wipe()\n"
            "    Secret('made-in-the-child').wipe()\n"
            "    os._exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "print(secret.expose())\n"
        )

        assert done.stdout == "shared-with-a-child\n"

    def test_the_end_of_the_interpreter_is_silent(self) -> None:
        done = run_python(
            "import threading\n"
            "from toolpost.secret import Secret, get_logger\n"
            "kept = Secret('kept-to-the-very-end')\n"
            "class Loop: pass\n"
            "loop = Loop(); loop.self = loop; loop.secret = Secret('kept-in-a-cycle')\n"
            "import builtins; builtins.kept = Secret('kept-even-longer')\n"
        )

        assert done.returncode == 0


NO_LOCK = """
import ctypes, os, resource
from toolpost.errors import ConfigError
from toolpost.secret import Secret, mask
Secret("before the limit").wipe()
resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
if os.geteuid() == 0:  # root is not bound by the limit
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
class TestWithoutTheLock:
    def test_a_secret_is_refused_and_the_error_says_how_to_mend_it(self) -> None:
        done = run_python(
            NO_LOCK + "held = []\n"
            "try:\n"
            "    for number in range(1000): held.append(Secret('x' * 5000))\n"
            "except ConfigError as error: print(error)\n"
        )

        assert re.fullmatch(
            r"secrets cannot be locked in memory \(mlock: [^;]+; RLIMIT_MEMLOCK, `ulimit -l`, is 0 KiB\): "
            r"raise that limit, or set allow_unlocked_secrets = true in \[tunables\]\n",
            done.stdout,
        )

    def test_a_secret_that_may_be_unlocked_works_all_the_same(self) -> None:
        done = run_python(
            NO_LOCK + "secret = Secret('x' * 5000, allow_unlocked=True)\n"
            "print(secret.locked, secret.expose() == 'x' * 5000, mask('x' * 5000))\n"
        )

        assert done.stdout == "False True ***\n"

    def test_an_unlocked_page_is_not_used_for_a_secret_that_must_be_locked(self) -> None:
        done = run_python(
            NO_LOCK + "kept = Secret('x' * 5000, allow_unlocked=True)\n"
            "try: Secret('y' * 5000)\n"
            "except ConfigError: print('refused')\n"
        )

        assert done.stdout == "refused\n"


class TestMask:
    def test_the_value_is_hidden_wherever_it_stands(self) -> None:
        secret = Secret("hunter2hunter2")

        assert mask("a hunter2hunter2, b hunter2hunter2hunter2hunter2") == "a ***, b ***"
        assert secret

    def test_a_text_without_one_is_given_back_as_the_same_object(self) -> None:
        secret = Secret("hunter2hunter2")
        text = "nothing to see \ud800 here"

        assert mask(text) is text
        assert secret

    def test_seven_characters_are_too_few_and_eight_enough(self) -> None:
        seven, eight = Secret("sevensv"), Secret("eighteig")

        assert mask("sevensv eighteig") == "sevensv ***"
        assert seven
        assert eight

    def test_a_dropped_one_is_forgotten(self) -> None:
        secret = Secret("soon-forgotten")

        del secret

        assert mask("soon-forgotten") == "soon-forgotten"

    def test_the_same_value_twice_is_hidden_until_both_are_dropped(self) -> None:
        first, second = Secret("one-of-a-pair"), Secret("one-of-a-pair")

        del first

        assert mask("one-of-a-pair") == "***"
        assert second

    def test_of_overlapping_ones_nothing_stays_behind(self) -> None:
        kept = [Secret("abcdefghij"), Secret("ghijklmnop"), Secret("cdefghijklm")]

        assert mask("<abcdefghijklmnop>") == "<***>"
        assert kept

    def test_a_longer_one_hides_the_shorter_one_in_it(self) -> None:
        kept = [Secret("password"), Secret("password-and-more")]

        assert mask("password-and-more; password") == "***; ***"
        assert kept

    def test_a_value_that_overlaps_itself_is_hidden_whole(self) -> None:
        secret = Secret("abababab")

        assert mask("ababababab!") == "***!"
        assert secret

    def test_a_mask_that_completes_another_secret_is_hidden_too(self) -> None:
        kept = [Secret("********"), Secret("12345678")]

        assert mask("***12345678***") == "***"
        assert mask("*****12345678") == "***"
        assert kept

    @pytest.mark.parametrize(
        "value", ['quo"te\\and\nline', "ümläut-ünd-€", "it's \x1b[1m 'so'", "tab\tand\x00nul"]
    )
    def test_it_is_found_as_json_repr_url_and_base64_write_it(self, value: str) -> None:
        secret = Secret(value)
        plain = value.encode()

        for form in (
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            msgspec.json.encode(value).decode()[1:-1],
            repr(value)[1:-1],
            urllib.parse.quote(value, safe=""),
            urllib.parse.quote(value),
            urllib.parse.quote_plus(value),
            base64.b64encode(plain).decode().rstrip("="),
            base64.urlsafe_b64encode(plain).decode().rstrip("="),
        ):
            assert mask(f"<{form}>") == "<***>", form
        assert secret

    def test_each_longer_line_of_a_value_is_hidden(self) -> None:
        secret = Secret("-----BEGIN KEY-----\r\n  MIIEvQIBADANBg\nshort\n-----END KEY-----\n")

        assert mask("line 2 is 'MIIEvQIBADANBg'") == "line 2 is '***'"
        assert mask("short -----END KEY-----") == "short ***"
        assert secret

    def test_the_credentials_in_a_header_are_hidden_without_their_scheme(self) -> None:
        secret = Secret("Bearer abcdef-ghijkl")

        assert mask("the token abcdef-ghijkl is no good") == "the token *** is no good"
        assert secret

    @given(
        st.lists(secret_text, min_size=1, max_size=4), st.lists(any_text, min_size=1, max_size=5), st.data()
    )
    def test_no_masked_text_contains_a_secret(
        self, values: list[str], around: list[str], data: st.DataObject
    ) -> None:
        kept = [Secret(value) for value in values]
        text = "".join(each + data.draw(st.sampled_from([*values, ""])) for each in around)

        masked = mask(text)

        assert not any(value in masked for value in values)
        assert mask(masked) is masked
        assert kept

    @given(any_text)
    def test_a_text_without_secrets_stays_as_it_is(self, text: str) -> None:
        secret = Secret("\ue000 no text has this \ue001")

        assert mask(text) is text
        assert secret

    def test_threads_make_mask_and_drop_at_once(self) -> None:
        failures: list[str] = []

        def work(number: int) -> None:
            for turn in range(200):
                value = f"thread-{number}-turn-{turn:04}"
                secret = Secret(value)
                if mask(f"<{value}>") != "<***>" or secret.expose() != value:
                    failures.append(value)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failures == []


def innermost(value: Any) -> Any:
    while not isinstance(value, str):
        value = next(iter(cast("dict[str, Any]", value).values())) if isinstance(value, dict) else value[0]
    return value


class TestMaskJson:
    def test_every_string_is_masked_keys_too(self) -> None:
        secret = Secret("hunter2hunter2")

        masked = mask_json(
            {"a": ["hunter2hunter2", 1, None], "is hunter2hunter2": ("x", {"b": "hunter2hunter2"})}
        )

        assert masked == {"a": ["***", 1, None], "is ***": ("x", {"b": "***"})}
        assert mask_json("hunter2hunter2") == "***"
        assert secret

    def test_a_number_that_shows_a_secret_is_masked(self) -> None:
        secret = Secret("1234567890")

        assert mask_json({"pin": 1234567890, "n": 12, "yes": True}) == {"pin": "***", "n": 12, "yes": True}
        assert secret

    def test_a_secret_that_json_escapes_is_found_as_it_is_and_escaped(self) -> None:
        secret = Secret('pass"word"\\1')

        assert mask_json([secret.expose(), json.dumps(secret.expose())]) == ["***", '"***"']
        assert secret

    def test_what_holds_none_is_the_same_object_even_inside_what_changes(self) -> None:
        secret = Secret("hunter2hunter2")
        clean = {"a": [1, {"b": "c"}]}
        value = {"clean": clean, "dirty": "hunter2hunter2"}

        assert mask_json(clean) is clean
        assert mask_json(value)["clean"] is clean
        assert value == {"clean": clean, "dirty": "hunter2hunter2"}, "the original is left alone"
        assert secret

    def test_depth_is_no_limit(self) -> None:
        secret = Secret("hunter2hunter2")
        value: Any = "hunter2hunter2"
        for turn in range(100_000):
            value = [value] if turn % 2 else {"in": value}

        assert innermost(mask_json(value)) == "***"
        assert innermost(value) == "hunter2hunter2"
        assert secret

    def test_a_part_that_is_shared_is_masked_once_and_stays_shared(self) -> None:
        secret = Secret("hunter2hunter2")
        shared = ["hunter2hunter2"]

        masked = mask_json([shared, {"a": shared}])

        assert masked == [["***"], {"a": ["***"]}]
        assert masked[0] is masked[1]["a"]
        assert secret

    def test_keys_that_would_fall_together_are_numbered(self) -> None:
        kept = [Secret("first-secret"), Secret("second-secret")]

        assert mask_json({"first-secret": 1, "second-secret": 2, 3: 4}) == {"***": 1, "***#2": 2, 3: 4}
        assert kept

    def test_a_cycle_ends(self) -> None:
        secret = Secret("hunter2hunter2")
        value: list[Any] = ["hunter2hunter2"]
        value.append(value)

        assert mask_json(value) == ["***", "***"]
        assert secret


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.format(record)
        self.records.append(record)

    @property
    def text(self) -> str:
        return "\n".join(map(self.format, self.records))


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    logger = get_logger("toolpost.tests.secret")
    logger.addHandler(collector)
    logger.propagate = False
    yield collector
    logger.removeHandler(collector)


class TestLogging:
    def test_a_logger_gets_its_filter_once(self) -> None:
        first = get_logger("toolpost.tests.once")

        assert get_logger("toolpost.tests.once") is first
        assert len(first.filters) == 1

    def test_message_and_arguments_are_masked(self, collector: Collector) -> None:
        secret = Secret("hunter2hunter2")

        get_logger("toolpost.tests.secret").warning("%s and %r", "hunter2hunter2", secret)

        assert collector.text == "*** and Secret('***')"
        assert collector.records[0].args == ()

    def test_a_record_without_a_secret_keeps_its_arguments(self, collector: Collector) -> None:
        secret = Secret("hunter2hunter2")

        get_logger("toolpost.tests.secret").warning("%s of %d", "one", 2)

        assert collector.records[0].msg == "%s of %d"
        assert collector.records[0].args == ("one", 2)
        assert secret

    def test_a_traceback_is_masked_with_its_causes(self, collector: Collector) -> None:
        secret = Secret("hunter2hunter2")

        try:
            try:
                raise KeyError("hunter2hunter2")
            except KeyError as cause:
                raise ValueError("bad: hunter2hunter2") from cause
        except ValueError:
            get_logger("toolpost.tests.secret").exception("failed")

        assert "hunter2hunter2" not in collector.text
        assert "ValueError: bad: ***" in collector.text
        assert "KeyError: '***'" in collector.text
        assert collector.records[0].exc_info is None
        assert secret

    def test_a_traceback_without_a_secret_stays(self, collector: Collector) -> None:
        secret = Secret("hunter2hunter2" * 2)

        try:
            raise ValueError("nothing secret")
        except ValueError:
            get_logger("toolpost.tests.secret").exception("failed")

        assert collector.records[0].exc_info
        assert secret

    def test_the_stack_is_masked(self, collector: Collector) -> None:
        secret = Secret("in_the_source_line")

        get_logger("toolpost.tests.secret").warning("here", stack_info=bool("in_the_source_line"))

        assert "in_the_source_line" not in collector.text
        assert "stack_info=bool(" in collector.text
        assert secret

    def test_arguments_that_do_not_fit_are_told_of_and_not_shown(self, collector: Collector) -> None:
        secret = Secret("hunter2hunter2")
        wrong: Any = ("hunter2hunter2", 2)

        get_logger("toolpost.tests.secret").warning("only one: %s", *wrong)

        assert collector.text == "only one: %s (its arguments do not fit)"
        assert secret

    def test_on_a_handler_it_masks_what_other_loggers_say(self) -> None:
        secret = Secret("hunter2hunter2")
        collector = Collector()
        collector.addFilter(MaskingFilter())
        foreign = logging.getLogger("someone.else")
        foreign.addHandler(collector)
        foreign.propagate = False

        foreign.warning("got hunter2hunter2")

        foreign.removeHandler(collector)
        assert collector.text == "got ***"
        assert secret
