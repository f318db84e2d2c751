"""In which units measures are shown."""

from weirlab.report.shared import display_unit


def test_a_time_of_nothing_is_shown_in_seconds_and_not_in_the_unit_it_is_stored_in() -> None:
    assert display_unit("ps", 0.0) == (1e-12, "s")
    factor, unit = display_unit("ps", 3e6)
    assert (round(3e6 * factor, 9), unit) == (3.0, "µs")
