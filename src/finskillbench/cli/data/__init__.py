"""`finskillbench data`: fetch, build, describe, check, compare, import and hand out editions. One file per command."""

from __future__ import annotations

import typer

from finskillbench.cli.data import (
    build,
    catalog,
    diff,
    doctor,
    explain,
    info,
    release,
    template,
    validate,
)
from finskillbench.cli.display import console
from finskillbench.cli.groups import ExtensibleGroup

app = typer.Typer(
    cls=ExtensibleGroup,
    help="Fetch, build, describe, validate, compare, import and hand out editions of the benchmark.",
)
app.command("build", epilog=build.EXAMPLE)(build.build)
app.command("catalog", epilog=catalog.EXAMPLE)(catalog.catalog)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.command("template", epilog=template.EXAMPLE)(template.template)
app.command("info", epilog=info.EXAMPLE)(info.info)
app.command("validate", epilog=validate.EXAMPLE)(validate.validate)
app.command("import", epilog=release.EXAMPLE)(release.import_release)
app.command("diff", epilog=diff.EXAMPLE)(diff.diff)
app.command("explain", epilog=explain.EXAMPLE)(explain.explain)


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)
