"""What a skill package gets wrong: the Agent Skills specification by skills-ref, then the rules of this project.

Nothing of the package is executed.
"""

import ast
import re
from pathlib import Path

import skills_ref

from finskillbench.errors import SkillError
from finskillbench.harness.skills.loader import REFERENCES, SCRIPTS, SkillPackage, load_package

MAX_BODY_LINES, MAX_BODY_TOKENS = 500, 5_000
# The usual estimate for English text; tokenizers differ by some 20 %.
_CHARS_PER_TOKEN = 4
_WHEN = re.compile(r"\b(when|whenever|use (this|it) (for|if|to|on)|if (you|the|a|an))\b", re.IGNORECASE)


def lint(path: Path) -> list[str]:
    """Problems of the package in the folder `path`, one line each; empty if there are none."""
    root = Path(path).resolve()
    problems = [" ".join(problem.split()) for problem in _specification(root)]
    try:
        package = load_package(root)
    except SkillError as error:
        text = str(error)
        # A front matter that cannot be read is in both lists, worded alike.
        return problems if any(problem in text for problem in problems) else [*problems, text]
    return [*problems, *_description(package), *_body(package), *_references(package), *_scripts(package)]


def _specification(root: Path) -> list[str]:
    try:
        return skills_ref.validate(root)
    except (OSError, UnicodeError, AttributeError) as error:
        return [f"SKILL.md cannot be read: {error}"]


def _description(package: SkillPackage) -> list[str]:
    if _WHEN.search(package.description):
        return []
    return ["description says what the skill does but not when to use it; add a sentence 'Use when ...'"]


def _body(package: SkillPackage) -> list[str]:
    problems: list[str] = []
    lines, tokens = len(package.body.splitlines()), len(package.body) // _CHARS_PER_TOKEN
    if not package.body:
        problems.append("SKILL.md has no instructions below its front matter")
    if lines >= MAX_BODY_LINES:
        problems.append(f"SKILL.md has {lines} lines, the limit is {MAX_BODY_LINES}; move detail to references/")
    if tokens >= MAX_BODY_TOKENS:
        problems.append(
            f"SKILL.md has some {tokens} tokens, the limit is {MAX_BODY_TOKENS}; move detail to references/"
        )
    return problems


def _references(package: SkillPackage) -> list[str]:
    problems: list[str] = []
    for name in package.references:
        if "/" in name.removeprefix(REFERENCES):
            problems.append(f"{name} lies deeper than one level; move it to {REFERENCES}")
        elif not _mentions(package.body, name):
            problems.append(f"{name} is not mentioned in SKILL.md, so no reader will find it")
    mentioned = set(re.findall(r"(?:references|scripts)/[\w.\-]+\.\w+", package.body))
    there = {*package.references, *package.scripts}
    problems += [f"SKILL.md mentions {name}, which is not there" for name in sorted(mentioned - there)]
    return problems


def _mentions(body: str, name: str) -> bool:
    return re.search(rf"(?<![\w.\-]){re.escape(name)}(?![\w\-])", body) is not None


def _scripts(package: SkillPackage) -> list[str]:
    problems: list[str] = []
    for name in package.scripts:
        if "/" in name.removeprefix(SCRIPTS):
            problems.append(f"{name} lies deeper than one level; move it to {SCRIPTS}")
        elif not _mentions(package.body, name):
            problems.append(f"{name} is not documented in SKILL.md, so no reader will run it")
        problems += [f"{name} {problem}" for problem in _script((package.root / name).read_bytes())]
    return problems


def _script(source: bytes) -> list[str]:
    """What is wrong with a script, read from its syntax tree."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"is not Python: {' '.join(str(error).split())}"]
    problems = [] if ast.get_docstring(tree) else ["has no module docstring; say what it takes and returns"]
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    if not mains:
        return [*problems, "has no function main(payload: dict) -> dict"]
    main = mains[-1]
    positional = (*main.args.posonlyargs, *main.args.args)
    if len(positional) != 1 or main.args.vararg or main.args.kwarg or main.args.kwonlyargs:
        problems.append(f"line {main.lineno}: main must take one argument, the payload")
    else:
        payload = positional[0]
        if not _is_dict(payload.annotation) or not _is_dict(main.returns):
            problems.append(f"line {main.lineno}: main must be annotated (payload: dict) -> dict")
    return problems


def _is_dict(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in {"dict", "JsonObject"}
