"""An interruption waits for what is being begun or ended, and comes then."""

import contextlib
import dis
import signal
import sys
import threading

import pytest

import weirlab
from weirlab import interruptions
from weirlab.interruptions import claiming
from weirlab.records import Records


def interrupt():
    signal.raise_signal(signal.SIGINT)


@claiming
def claimed(log, *, at=""):
    log.append("made")
    if at == "beginning":
        interrupt()
    try:
        yield
    finally:
        if at == "end":
            interrupt()
        log.append("given back")


@pytest.mark.parametrize(
    ("at", "expected"),
    [("beginning", ["made", "given back"]), ("end", ["made", "block", "given back"])],
)
def test_what_is_made_is_given_back_whenever_an_interruption_comes(at, expected):
    log = []
    with pytest.raises(KeyboardInterrupt), claimed(log, at=at):
        log.append("block")
    assert log == expected


def test_an_interruption_in_the_block_comes_at_once():
    log = []
    with pytest.raises(KeyboardInterrupt), claimed(log):
        interrupt()
    assert log == ["made", "given back"]


LOOKS_FOR_NONE = ("RESUME", "NOP", "LOAD_FAST", "RETURN_VALUE")
"""Instructions at which no signal can be handled; except the first, which is the call of a function."""


def interrupted_at(place, number, work):
    """Whether `work` has so many instructions; the signal comes at this one of them."""
    files = {interruptions.__file__, *(each.__file__ for each in (contextlib, signal, threading))}
    count, before = 0, sys.gettrace()

    def instruction(frame, event, _):
        nonlocal count
        if event == "opcode" and dis.opname[frame.f_code.co_code[frame.f_lasti]] not in LOOKS_FOR_NONE:
            count += 1
            if count == place:
                signal.raise_signal(number)
        return instruction

    def called(frame, _, __):
        if frame.f_code.co_filename in files:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return instruction
        return None

    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count >= place


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whenever_a_signal_comes_all_is_given_back_and_no_signal_is_ignored_from_then_on(number):
    ending = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]
    before = {each: signal.signal(each, signal.default_int_handler) for each in ending}
    place, is_within, kept = 0, True, []

    def work():
        with claimed(log):
            kept.append(1)

    try:
        while is_within:
            place, log = place + 1, []
            try:
                is_within = interrupted_at(place, number, work)
                assert not is_within, "the signal came to nothing"
            except KeyboardInterrupt as error:
                kept.append(error)  # with what its frames hold, so that nothing ends by itself
            assert log.count("made") == log.count("given back"), place
            for each in ending:
                with pytest.raises(KeyboardInterrupt):
                    signal.raise_signal(each)
                signal.signal(each, signal.default_int_handler)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_an_interruption_while_a_run_is_written_leaves_a_whole_run(tmp_path, monkeypatch):
    result = weirlab.run("incast")
    write = Records.save

    def interrupted(records, directory):
        interrupt()
        write(records, directory)

    monkeypatch.setattr(Records, "save", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        result.save(tmp_path / "kept")
    assert caught.value.__notes__ == [f"the records are kept in {tmp_path / 'kept'}"]
    assert weirlab.read(tmp_path / "kept").records["flows"].equals(result.records["flows"])
