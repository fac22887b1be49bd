"""Reading packages and resolving the names a model asks for."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.domains import domains
from finskillbench.errors import InputError, SkillError
from finskillbench.harness.skills import loader
from finskillbench.harness.skills.loader import SkillPackage, curated, digest, load_package, script_path, script_text

FILES = {
    "SKILL.md": (
        "---\nname: bond-ladder\ndescription: Builds ladders. Use when rungs are asked for.\n---\n# Steps\n\nDo it.\n"
    ),
    "references/rungs.md": "What a rung is.\n",
    "scripts/build.py": '"""Build."""\n',
    "scripts/roll.py": '"""Roll."""\n',
    "notes.txt": "beside\n",
}


def make(folder: Path, **changed: str) -> Path:
    root = folder / "bond-ladder"
    for name, text in (FILES | changed).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> SkillPackage:
    return load_package(make(tmp_path_factory.mktemp("skills")))


def test_a_package_is_read_as_written(package: SkillPackage) -> None:
    assert (package.name, package.description) == ("bond-ladder", "Builds ladders. Use when rungs are asked for.")
    assert package.body == "# Steps\n\nDo it."
    assert dict(package.references) == {"references/rungs.md": "What a rung is.\n"}
    assert package.scripts == ("scripts/build.py", "scripts/roll.py")


def test_cases_for_evaluators_are_no_part_of_a_package(package: SkillPackage, tmp_path: Path) -> None:
    root = make(tmp_path, **{"evals/evals.json": "{}", "evals/results/.hidden": "", "references/evals/case.md": "kept"})
    (root / "evals" / "latest").symlink_to("/etc")
    read = load_package(root)
    assert set(read.references) == {"references/rungs.md", "references/evals/case.md"}
    (root / "references" / "evals" / "case.md").unlink()
    assert load_package(root).digest == package.digest


FORMS = {
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_byte_order_marks_and_line_ends_are_no_part_of_a_text(form: str, package: SkillPackage, tmp_path: Path) -> None:
    root = make(tmp_path)
    for name, text in FILES.items():
        (root / name).write_bytes(FORMS[form](text))
    read = load_package(root)
    assert (read.name, read.description, read.body) == (package.name, package.description, package.body)
    assert read.references == package.references
    assert [script_text(read, name) for name in read.scripts] == [FILES[name] for name in read.scripts]


def test_front_matter_ends_at_a_line_of_dashes_only(tmp_path: Path) -> None:
    text = "---\nname: bond-ladder\ndescription: Builds --- and rolls---ladders.\ntags: [a, b]\n---\n# Steps\n---\nEnd."
    read = load_package(make(tmp_path, **{"SKILL.md": text}))
    assert read.description == "Builds --- and rolls---ladders."
    assert read.body == "# Steps\n---\nEnd."


def test_hidden_files_are_left_out(package: SkillPackage, tmp_path: Path) -> None:
    root = make(tmp_path, **{".gitignore": "*", "scripts/.secret.py": "", ".git/config": "", "references/.a.md": ""})
    (root / ".link").symlink_to("/etc")
    assert load_package(root) == replace(package, root=root)


def test_images_are_no_references_and_may_be_large(tmp_path: Path) -> None:
    root = make(tmp_path)
    for name in ("references/chart.png", "assets/chart.png"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"\x89PNG\r\n\0" * 200_000)
    assert set(load_package(root).references) == {"references/rungs.md"}
    with (root / "assets" / "chart.png").open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    with pytest.raises(SkillError, match="it has more than 67108864 bytes; make its files smaller"):
        load_package(root)


def test_the_digest_is_of_names_and_bytes_only(package: SkillPackage, tmp_path: Path) -> None:
    root = make(tmp_path)
    (root / "scripts" / "__pycache__").mkdir()
    (root / "scripts" / "__pycache__" / "build.pyc").write_bytes(b"cache")
    os.utime(root / "SKILL.md", (1, 1))
    assert load_package(root).digest == package.digest
    assert package.digest == digest({name: text.encode() for name, text in reversed(FILES.items())})
    # Known value: two packages of the same content have this digest on every machine.
    assert digest({"a": b"b"}) == "3c9d591045bc8876f9d0399bbfb05c6a412096e906f73278f98406cd5dca86df"


@pytest.mark.parametrize("name", FILES)
def test_the_digest_changes_with_every_file(name: str, package: SkillPackage, tmp_path: Path) -> None:
    assert load_package(make(tmp_path, **{name: FILES[name] + " "})).digest != package.digest


def test_bytes_moved_between_name_and_content_change_the_digest() -> None:
    assert len({digest({"ab": b"c"}), digest({"a": b"bc"}), digest({"abc": b""}), digest({"a": b"", "b": b"c"})}) == 4


def test_scripts_are_found_by_both_names(package: SkillPackage) -> None:
    for name in ("scripts/build.py", "build.py"):
        assert script_path(package, name) == package.root / "scripts" / "build.py"


TRAVERSALS = [
    "../build.py", "scripts/../scripts/build.py", "./scripts/build.py", "scripts//build.py", "scripts/./build.py",
    "/etc/passwd", "//etc/passwd", "scripts/build.py/", "scripts/build.py\0", "\0", "scripts/build.py\0.md", "",
    "scripts\\build.py", "..\\build.py", "C:\\build.py", "scripts/BUILD.py", "Scripts/build.py", "BUILD.PY", "build",
    "scripts/build.pyc", "scripts", "scripts/", ".", "..", "~", "~/build.py", "SKILL.md", "references/rungs.md",
    " build.py", "build.py ", "build.py\n", "scripts/buıld.py", "ｂuild.py", "scripts∕build.py", "%2e%2e/build.py",
    "file:///etc/passwd", "scripts/__pycache__/build.pyc", "notes.txt", "../" * 500 + "etc/passwd", "a" * 100_000,
    "\ud800", "bond-ladder/scripts/build.py",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_name_leaves_the_package(name: str, package: SkillPackage) -> None:
    with pytest.raises(SkillError) as caught:
        script_path(package, name)
    text = str(caught.value)
    assert "scripts/build.py" in text
    assert "\n" not in text
    assert "\0" not in text
    assert len(text) < 1000


@pytest.mark.parametrize("name", [None, 3, b"build.py", ["build.py"], {"a": 1}, Path("build.py"), True])
def test_a_name_that_is_not_text_is_refused(name: object, package: SkillPackage) -> None:
    with pytest.raises(SkillError, match="named by text"):
        script_path(package, name)  # pyright: ignore[reportArgumentType]


pieces = st.sampled_from(
    [
        "..",
        ".",
        "/",
        "\\",
        "\0",
        "scripts",
        "build.py",
        "roll",
        ".py",
        "BUILD.PY",
        "~",
        "C:",
        "references",
        " ",
        "etc/passwd",
    ]
)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.one_of(st.text(max_size=40), st.lists(pieces, max_size=8).map("".join)))
def test_any_text_is_a_listed_script_or_an_error(name: str, package: SkillPackage) -> None:
    listed = {"scripts/build.py", "build.py", "scripts/roll.py", "roll.py"}
    if name in listed:
        assert script_path(package, name).parent == package.root / "scripts"
    else:
        with pytest.raises(SkillError):
            script_path(package, name)


def test_a_wrong_case_is_explained(package: SkillPackage) -> None:
    with pytest.raises(SkillError, match=r"case-sensitive, did you mean scripts/build\.py\?"):
        script_path(package, "Build.py")


def test_a_slip_of_the_pen_is_explained(package: SkillPackage) -> None:
    with pytest.raises(SkillError, match=r"did you mean scripts/build\.py\?; its scripts: "):
        script_path(package, "scripts/bulid.py")


@pytest.mark.parametrize("swap", ["file", "folder"])
def test_a_script_swapped_for_a_link_after_reading_is_refused(swap: str, tmp_path: Path) -> None:
    package = load_package(make(tmp_path))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "build.py").write_text("print('outside')\n")
    if swap == "file":
        (package.root / "scripts" / "build.py").unlink()
        (package.root / "scripts" / "build.py").symlink_to(outside / "build.py")
    else:
        shutil.rmtree(package.root / "scripts")
        (package.root / "scripts").symlink_to(outside, target_is_directory=True)
    with pytest.raises(SkillError, match="no longer the file it was"):
        script_path(package, "build.py")


def link_out(root: Path) -> None:
    (root / "references" / "out.md").symlink_to("/etc/passwd")


def link_folder(root: Path) -> None:
    (root / "more").symlink_to(root.parent, target_is_directory=True)


def pipe(root: Path) -> None:
    os.mkfifo(root / "scripts" / "pipe.py")


def latin_reference(root: Path) -> None:
    (root / "references" / "b.md").write_bytes(b"ok\xff")


def latin_script(root: Path) -> None:
    (root / "scripts" / "build.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\n")


def utf_16(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"], encoding="utf-16")


def climbing(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"].replace("bond-ladder", "x/bond-ladder"))


def unclosed(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"].replace("\n---\n", "\n--- \ta\n"))


def aliased(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"].replace("---\n#", "license: &a x\nmetadata: *a\n---\n#"))


def long_front(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"].replace("---\n#", f"license: {'x' * 8192}\n---\n#"))


def folders(root: Path) -> None:
    for number in range(1000):
        (root / "assets" / str(number)).mkdir(parents=True)


def repeated(root: Path) -> None:
    (root / "SKILL.md").write_text(FILES["SKILL.md"].replace("---\n#", "name: b\n---\n#"))


def huge(root: Path) -> None:
    (root / "references" / "b.md").write_bytes(b"x" * 1_100_000)


def many(root: Path) -> None:
    for number in range(200):
        (root / f"{number}.txt").write_text("")


def backslash(root: Path) -> None:
    (root / "scripts" / "a\\b.py").write_text("")


def lower_case(root: Path) -> None:
    (root / "SKILL.md").rename(root / "skill.md")


def no_front(root: Path) -> None:
    (root / "SKILL.md").write_text("# Steps\n")


def bad_yaml(root: Path) -> None:
    (root / "SKILL.md").write_text("---\nname: [a\n---\nx")


def no_name(root: Path) -> None:
    (root / "SKILL.md").write_text("---\ndescription: x\n---\nx")


def no_folder(root: Path) -> None:
    shutil.rmtree(root)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (link_out, "'references/out.md' is a symbolic link"),
        (link_folder, "'more' is a symbolic link"),
        (pipe, "neither a file nor a folder"),
        (latin_reference, "b.md: not UTF-8 at byte 2"),
        (latin_script, "scripts/build.py: not UTF-8 at byte 28"),
        (utf_16, "SKILL.md: not text, byte 3 is zero; save it as UTF-8"),
        (climbing, "name 'x/bond-ladder' cannot name a folder"),
        (unclosed, "front matter is not closed"),
        (aliased, "line 5: front matter is not valid YAML: aliases are not allowed"),
        (long_front, "front matter has more than 8192 characters"),
        (folders, "more than 1000 files and folders"),
        (repeated, "a field appears twice"),
        (huge, "more than 1048576 bytes"),
        (many, "more than 200 files"),
        (backslash, "backslash"),
        (lower_case, "no SKILL.md in it"),
        (no_front, "must start with YAML front matter"),
        (bad_yaml, "SKILL.md, line 2: front matter is not valid YAML: "),
        (no_name, "front matter needs the field 'name'"),
        (no_folder, "no such folder"),
    ],
)
def test_a_spoiled_package_is_refused(spoil: Callable[[Path], None], problem: str, tmp_path: Path) -> None:
    root = make(tmp_path)
    spoil(root)
    with pytest.raises(SkillError) as caught:
        load_package(root)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_curated_packages_are_listed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path)
    monkeypatch.setattr(loader, "domains", lambda: (replace(domains()[0], skills=(root,)),))
    assert list(curated()) == ["bond-ladder"]
    monkeypatch.setattr(loader, "domains", tuple)
    assert curated() == {}


def test_two_packages_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = (make(tmp_path / "one"), make(tmp_path / "two"))
    monkeypatch.setattr(loader, "domains", lambda: tuple(replace(domains()[0], skills=(root,)) for root in roots))
    with pytest.raises(InputError, match=r"one/bond-ladder and .*two/bond-ladder are both named bond-ladder; rename"):
        curated()
