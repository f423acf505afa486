"""The sentences of an audit, shared by its text and its page."""

from __future__ import annotations

import math

from .._fitted.names import SPACE, format_count, percent
from .parts import LossParts, Part
from .result import Audit, Finding

LOSSES = {"log_loss": "Log loss", "squared_error": "Squared error"}
PARTS = {
    "calibration": "what a curve for all rows would correct",
    "grouping": "what regions would correct beyond it",
    "refinement": "the rest",
}
COLUMNS = ("", "rows", "predicted", "observed", "shift of log-odds", "adjusted", "halves", "scores")
"""The columns of groups and regions."""
_SMALLEST_SHOWN = 1e-12


def p_text(p_value: float | None) -> str:
    """A p-value; the smallest ones as a bound."""
    if p_value is None:
        return "not tested"
    if p_value < _SMALLEST_SHOWN:
        return "p < 1e-12"
    return f"p = {p_value:.3f}" if p_value >= 0.001 else f"p = {p_value:.0e}"


def headline(audit: Audit) -> str:
    """The answer in one sentence."""
    off = sum(each.is_off for each in [*audit.groups, *audit.regions])
    places = f"{off}{SPACE}group{'s' if off > 1 else ''} or region{'s' if off > 1 else ''}"
    where = f"in {places}"
    if audit.p_value <= audit.alpha:
        return (
            f"The scores are not calibrated everywhere{f': they are off {where}' if off else ''}."
        )
    if off:
        return f"The test of the whole finds no error, but the scores are off {where}."
    helps = _helps(audit.parts["log_loss"])
    if helps:
        # Two answers to two questions: the reader would meet the other one further down.
        who = {"calibration": "a curve", "grouping": "regions"}
        named = " and ".join(who[name] for name in helps)
        return f"No test found an error, but {named} would lower the log loss."
    return "No miscalibration was found."


def subject(audit: Audit) -> str:
    """What was audited."""
    of = f"the probability of {audit.event}" if audit.event else f"{len(audit.classes)} classes"
    return f"{format_count(audit.n_rows)}{SPACE}rows, {of}"


def whole_sentences(audit: Audit) -> list[str]:
    """The test of the whole: claims, each with its p-value."""
    whole = audit.whole
    drawn = "flipped signs of residuals" if audit.grouped else "labels drawn from the scores"
    sets = f"{whole.n_simulations} sets of {drawn}"
    # Fewer than all sets can show is a bound, by the likelihood ratio.
    is_bound = whole.p_value < 1.0 / (1.0 + whole.n_simulations)
    how = f"a bound; none of {sets} was as far off" if is_bound else f"by {sets}"
    return [
        f"Test of the whole, that the scores are calibrated everywhere: {p_text(whole.p_value)} "
        f"({how}).",
        f"The part of this test on one curve for all rows: {p_text(whole.curve_p_value)}.",
        f"The part on {whole.n_regions:,} regions of one or two conditions: "
        f"{p_text(whole.regions_p_value)}.",
    ]


def part_text(part: Part) -> str:
    """A part of a loss with its interval."""
    # Adding 0 to what is rounded leaves no minus before it.
    mean, low, high = (round(each, 4) + 0.0 for each in (part.mean, part.low, part.high))
    return f"{mean:.4f} ({low:.4f} to {high:.4f})".replace("-", "−")


def verdict_of_parts(parts: LossParts) -> str:
    """The conclusion from the parts of a loss."""
    helps = _helps(parts)
    if not helps:
        return "Neither a curve nor regions would lower the loss by more than chance."
    if helps == ["calibration"]:
        return "A curve would lower the loss; regions would add no more than chance."
    if helps == ["grouping"]:
        return "A curve would lower the loss by no more than chance, but regions would lower it."
    return "A curve would lower the loss, and regions would lower it further."


def _helps(parts: LossParts) -> list[str]:
    """The parts of a loss that are more than chance."""
    return [name for name in ("calibration", "grouping") if getattr(parts, name).low > 0.0]


def shift_text(finding: Finding) -> str:
    """The shift of log-odds with its interval."""
    return (
        f"{_signed(finding.shift)} ({_signed(finding.shift_low)} to {_signed(finding.shift_high)})"
    )


def _signed(number: float) -> str:
    if math.isinf(number):
        return "−∞" if number < 0.0 else "+∞"
    return f"{number:+.2f}".replace("-", "−")


def observed_text(finding: Finding) -> str:
    """The frequency with its interval."""
    return f"{percent(finding.observed)} ({percent(finding.low)} to {percent(finding.high)})"


def halves_text(finding: Finding) -> str:
    """Whether halves of the rows agree."""
    if finding.same_in_halves is None:
        return "unknown"
    if finding.same_in_halves:
        return "agree"
    assert finding.shifts_in_halves is not None
    return " / ".join(map(_signed, finding.shifts_in_halves))


def verdict_of(finding: Finding) -> str:
    """Whether the scores are off."""
    if finding.adjusted_p_value is None:
        return "too few rows or events"
    if not finding.is_off:
        return "opposite" if finding.is_opposite else "may be chance"
    return "too low" if finding.observed > finding.predicted else "too high"


def tests_text(n_tests: int, method: str) -> str:
    """For how many tests p-values are adjusted, and how."""
    if n_tests == 0:
        return "No group or region was tested"
    tests = "the only test" if n_tests == 1 else f"all {n_tests:,} tests"
    return f"P-values are adjusted for {tests} of groups and regions ({method})"


def adjusted_text(audit: Audit) -> str:
    """How p-values are adjusted."""
    method = "Holm" if audit.adjustment == "holm" else "Benjamini and Hochberg"
    claim = f"; an error is claimed at {audit.alpha:g} or less" if audit.n_tests else ""
    return f"{tests_text(audit.n_tests, method)}{claim}."


def regions_sentence(audit: Audit) -> str:
    """How many regions were tested, and how many of them are off."""
    tested = sum(each.p_value is not None for each in audit.regions)
    off = sum(each.is_off for each in audit.regions)
    if not tested:
        return "No region was large enough to be tested."
    if not off:
        return f"No error was found in {tested} tested."
    return f"The scores are off in {off} of {tested} tested."


def measures(audit: Audit) -> list[str]:
    """The multicalibration error and the smooth calibration error."""
    mce = audit.mce
    large = "; it can exceed 1 where scores are very near 0 or 1" if mce.error > 1.0 else ""
    return [
        f"Multicalibration error {mce.error:.4f} ({mce.sigmas:.1f} standard deviations of "
        f"{mce.standard_deviation:.4f}; errors above {mce.detectable:.4f} can be detected), in "
        f"{mce.segment}; {p_text(mce.adjusted_p_value)}, adjusted for {mce.n_segments:,} "
        f"segments{large}.",
        f"Smooth calibration error {audit.smooth_ece:.4f}.",
    ]


def notes(audit: Audit) -> list[str]:
    """What to bear in mind."""
    found = [
        "Intervals have a confidence of 95 %, each by itself. Only p-values are adjusted for the "
        "number of tests, so they decide.",
        'The rows of each line were divided in two at random. In the column halves, "agree" says '
        "that the shifts of the two parts differ by no more than chance; otherwise both are shown. "
        "It is unknown if a part has too few rows, or no finite shift.",
        "Regions were found on one half of all rows and tested on the other, from which their "
        "numbers come. They are tested for an error in the same direction. An error in the "
        "opposite one does not count, and has a p-value near 1. Of regions that "
        "are nearly the same, with nine rows of ten in common, all are tested and one is shown.",
        "Groups and regions of fewer than 50 rows, or of hardly any events, are not tested.",
    ]
    if audit.weighted:
        found.append("A row is one observation, whatever its weight.")
    if audit.grouped:
        found.append(
            "Errors in a group of rows may depend on each other, so each group is one observation. "
            "To test the groups of a column, name it with by."
        )
    return found
