"""Hostile files of skill packages: each writes one into a sound package, most of 1 MiB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from finskillbench.harness.skills.template import package_files

MIB = 1024 * 1024
SIZE = MIB - 4096
"""Bytes just below the limit of a file, so that the file is parsed and not refused for its size."""
BLOCK = 8_000
"""Characters just below the limit of a block that is parsed."""
NAME = "my-notes"
FRONT = f"---\nname: {NAME}\ndescription: Adds up. Use when sums are needed.\n"
BODY = "---\nRead references/conventions.md, run scripts/total.py.\n"
MAIN = '"""Add up."""\ndef main(payload: dict) -> dict:\n    return {}\n'

Spoil = Callable[[Path], object]


def sound(root: Path) -> Path:
    """Write a package that lints clean."""
    for path, text in package_files(NAME).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def fill(unit: str, size: int = SIZE) -> str:
    return unit * (size // len(unit.encode()))


def numbered(form: str, size: int = SIZE) -> str:
    """Lines that differ, of some `size` bytes in all."""
    return "".join(form.format(number) for number in range(size // len(form.format(10_000))))


def write(path: str, data: str | bytes) -> Spoil:
    def spoil(root: Path) -> None:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))

    return spoil


SCRIPTS = {
    "a sum of 300,000 terms": "x = " + "1+" * 300_000 + "1",
    "200,000 attribute accesses": "x" + ".a" * 200_000,
    "statements": fill("x\n"),
    "statements on one line": fill("x;"),
    "calls": "f" + fill("()"),
    "subscripts": "f" + fill("[0]"),
    "lists": fill("["),
    "parentheses": fill("("),
    "dictionaries": fill("{1:"),
    "signs": fill("-") + "1",
    "nots": fill("not ") + "1",
    "powers": fill("1**") + "1",
    "lambdas": fill("lambda:") + "1",
    "conditions": fill("1 if 1 else ") + "1",
    "comparisons": fill("1<") + "1",
    "targets": fill("x=") + "1",
    "a dotted import": "import " + fill("a.") + "a",
    "a dotted import from": "from " + fill("a.") + "a import b",
    "an f-string": 'f"' + fill("{1}") + '"',
    "nested f-strings": fill("f'{") + "1" + fill("}'"),
    "concatenated strings": fill('"a"'),
    "decorators": fill("@a\n") + "def f(): 0",
    "arguments": "f(" + fill("a=1,") + ")",
    "elifs": "if 1:\n x\n" + fill("elif 1:\n x\n"),
    "cases": "match x:\n" + fill(" case 1:0\n"),
    "indentation": "".join(" " * depth + "if 1:\n" for depth in range(1400)),
    "a number": "x = " + fill("9"),
    "a list of numbers": "x = [" + fill("1,") + "]",
    "a docstring of tabs": '"""' + fill("\t\n") + '"""',
    "an open string": '"""' + fill("a\n"),
    "backslashes": fill("\\\n"),
    "walruses": fill("(a:="),
    "types": "x: " + fill("a|") + "a",
    "a surrogate in a docstring": '"""\\ud800"""\n' + MAIN.split("\n", 1)[1],
    "an encoding": "# -*- coding: utf-7 -*-\n" + MAIN,
    "a zero byte": MAIN + "\0",
    "starts of a block": fill("# /// script\n"),
    "starts and lines": fill("# /// script\n#\n"),
    "blocks": fill("# /// script\n# a = 1\n# ///\n\n"),
    "ends of a block": "# /// script\n" + fill("# ///\n"),
    "comments": "# /// script\n" + fill("#\n"),
    "a block of 1 MiB": "# /// script\n" + fill("# a\n") + "# ///\n",
}
TOML = {
    "deep lists": "dependencies = " + fill("[", BLOCK),
    "deep lists that end": "dependencies = " + fill("[", BLOCK // 2) + fill("]", BLOCK // 2),
    "deep tables": "a = " + fill("{a=", BLOCK),
    "a dotted key": fill("a.", BLOCK) + "a = 1",
    "a dotted table": "[" + fill("a.", BLOCK) + "a]",
    "a long text": 'requires-python = "' + fill(">=3,", BLOCK) + '"',
    "a marker": 'dependencies = ["numpy; ' + fill("(", BLOCK) + '"]',
    "a marker of parts": 'dependencies = ["numpy; ' + fill("os_name<1 or ", BLOCK) + '"]',
    "a marker without order": "dependencies = [\"numpy; python_version ~= 'a'\"]",
    "extras": f'dependencies = ["numpy[{fill("a,", BLOCK)}a]"]',
    "a large number": "a = " + fill("9", BLOCK),
}
YAML = {
    "deep lists": "metadata: " + fill("[", BLOCK) + "\n",
    "deep mappings": "metadata: " + fill("{a: ", BLOCK) + "\n",
    "deep blocks": "metadata:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 120)),
    "aliases": "metadata:\n  a: &a [x,x]\n" + "".join(f"  b{n}: &b{n} [*a,*a]\n" for n in range(300)),
    "merged keys": "a: &a {k: v}\nb: &b {<<: [*a,*a,*a]}\n",
    "tags": "metadata: !!python/object/apply:os.system [true]\n",
    "fields": "".join(f"a{number}: b\n" for number in range(800)),
    "a repeated field": "name: other\n",
    "questions": fill("? ", BLOCK) + "\n",
    "dashes": "metadata:\n  " + fill("- ", BLOCK) + "\n",
    "an open quote": 'metadata: "' + fill("a\n ", BLOCK) + "\n",
    "a folded text": "metadata: >\n" + fill("  a\n\n", BLOCK),
    "escapes": 'license: "' + fill("\\ud800", BLOCK) + '"\n',
    "numbers": "metadata: " + fill("1:", BLOCK) + "\n",
    "directives": fill("%YAML 1.1\n", BLOCK),
    "1 MiB": "metadata: " + fill("a") + "\n",
    "control characters": 'metadata: "\x1b[2J"\n',
}
DOCUMENTS = {
    "no fence": fill("a\n"),
    "an open fence": "---\n" + fill("a\n"),
    "dashes on one line": fill("---"),
    "fences": FRONT + fill("---\n"),
    "lines": FRONT + BODY + numbered("This line says {} what to do in some detail.\n"),
    "bars": FRONT + BODY + fill("|"),
    "rows": FRONT + BODY + fill("|a|b|c|d|\n"),
    "paths": FRONT + BODY + numbered("references/a{}.md\n"),
    "one path": FRONT + BODY + fill("references/"),
    "one word": FRONT + BODY + fill("a"),
    "brackets": FRONT + BODY + fill("["),
    "names of ours": FRONT + BODY + fill("stress_testing_"),
    "returns": (FRONT + BODY).replace("\n", "\r") + fill("\r"),
    "UTF-16": b"\xff\xfe" + (FRONT + BODY).encode("utf-16-le"),
    "Latin-1": (FRONT + BODY).encode() + fill("a").encode() + b"\xe9",
    "4 MiB": FRONT + BODY + fill("a", 4 * MIB),
    "a path as name": FRONT.replace(NAME, "../../x") + BODY,
}
JSON = {
    "deep lists": fill("["),
    "deep objects": fill('{"a":'),
    "deep lists that end": fill("[", MIB // 2) + fill("]", MIB // 2),
    "a number": fill("9"),
    "an exponent": '{"evals": [1e999999999]}',
    "files": '{"evals": [{"files": [' + numbered('"{}",') + '""]}]}',
    "cases": f'{{"evals": [{fill("1,")}1]}}',
    "climbing": '{"evals": [{"files": ["../../../../etc/passwd", "/etc/passwd", "a\\u0000b"]}]}',
    "a long name": f'{{"evals": [{{"expected_script": "{fill("a", MIB - 99)}"}}]}}',
    "bytes": b"\xff" * MIB,
    "surrogates": '{"skill_name": "\\ud800", "evals": []}',
}


def _link(name: str, target: str) -> Spoil:
    return lambda root: ((root / name).unlink(missing_ok=True), (root / name).symlink_to(target))


def _fifo(name: str) -> Spoil:
    def spoil(root: Path) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).unlink(missing_ok=True)
        os.mkfifo(root / name)

    return spoil


def _deep(root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    for _ in range(900):  # deeper than a path may be long
        os.mkdir("abcdefgh", dir_fd=folder)
        below = os.open("abcdefgh", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)


def _sparse(name: str, size: int) -> Spoil:
    def spoil(root: Path) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        with (root / name).open("wb") as file:
            file.truncate(size)

    return spoil


def _many(form: str, count: int) -> Spoil:
    def spoil(root: Path) -> None:
        for number in range(count):
            (root / form.format(number)).mkdir(parents=True)

    return spoil


FOLDERS: dict[str, Spoil] = {
    "a link for SKILL.md": _link("SKILL.md", "/dev/zero"),
    "a pipe for SKILL.md": _fifo("SKILL.md"),
    "a pipe for evals.json": _fifo("evals/evals.json"),
    "a link for evals.json": _link("evals/evals.json", "/dev/zero"),
    "a pipe for a script": _fifo("scripts/total.py"),
    "a link to itself": _link("references/loop.md", "loop.md"),
    "folders in folders": _deep,
    "many folders": _many("assets/{}", 1500),
    "an asset of 1 GiB": _sparse("assets/image.png", 1024 * MIB),
    "a name in Latin-1": lambda root: (root / os.fsdecode(b"\xe9")).mkdir(),
    "a name with a line": lambda root: (root / "a\nb").mkdir(),
    "an unreadable script": lambda root: (root / "scripts" / "total.py").chmod(0),
}


def cases() -> Iterator[tuple[str, Spoil]]:
    """Every hostile file by what it is."""
    for name, text in SCRIPTS.items():
        yield f"script: {name}", write("scripts/total.py", text)
    for name, text in TOML.items():
        yield f"PEP 723: {name}", write("scripts/total.py", f"# /// script\n# {text}\n# ///\n{MAIN}")
    for name, text in YAML.items():
        yield f"front matter: {name}", write("SKILL.md", FRONT + text + BODY)
    for name, text in DOCUMENTS.items():
        yield f"SKILL.md: {name}", write("SKILL.md", text)
    for name, text in JSON.items():
        yield f"evals.json: {name}", write("evals/evals.json", text)
    for name, text in {
        "lines": numbered("This line says {} what to do.\n"),
        "words": fill("a "),
        "zeros": b"\0" * MIB,
    }.items():
        yield f"reference: {name}", write("references/conventions.md", text)
    for name, spoil in FOLDERS.items():
        yield f"folder: {name}", spoil
