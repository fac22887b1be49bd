"""What the processes of a test run tell each other of labels that were found sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.edition import examined
from tests.edition.conftest import Workshop
from tests.edition.examined import SoundLabels, validated

from finskillbench.edition import Edition
from finskillbench.findings import CheckState

ONE, TWO = bytes(range(32)), bytes(range(1, 33))


def test_what_one_process_tells_the_other_hears(tmp_path: Path) -> None:
    first, second = SoundLabels(), SoundLabels()
    for each in (first, second):
        each.share(tmp_path / "sound")
    first.add(ONE)
    assert ONE in first
    assert ONE not in second
    second.hear()
    assert ONE in second
    with (tmp_path / "sound").open("ab") as file:
        file.write(TWO[:5])  # somebody is writing
    second.hear()
    assert TWO not in second
    with (tmp_path / "sound").open("ab") as file:
        file.write(TWO[5:])
    second.hear()
    assert TWO in second
    assert (tmp_path / "sound").read_bytes() == ONE + TWO
    second.add(ONE)
    assert (tmp_path / "sound").read_bytes() == ONE + TWO


def test_a_sound_label_is_not_examined_again_and_an_altered_one_is(
    slim: Edition, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated(slim, ["risk_management"])
    asked: list[str] = []
    examine = vars(examined)["_examine"]

    def counting(subtask: object, label: object, findings: object) -> None:
        asked.append(vars(examined)["_digest"](label).hex())
        examine(subtask, label, findings)

    monkeypatch.setattr(examined, "_examine", counting)
    assert validated(slim, ["risk_management"]).passed
    assert asked == []
    workshop.edit("truth", "stress_testing", lambda row: row["expected_output"].clear())
    report = workshop.validated("risk_management")
    assert "stress_testing" in {check.name for check in report.checks if check.state is CheckState.FAIL}
    assert len(asked) == 1
