"""`finskillbench data`: fetch, build, describe, check, compare, import and hand out editions. One file per command."""

from __future__ import annotations

import typer

from finskillbench.cli.data import (
    build,
    canary,
    catalog,
    diff,
    doctor,
    explain,
    export,
    fetch,
    info,
    release,
    template,
    validate,
)
from finskillbench.cli.display import console

app = typer.Typer(help="Fetch, build, describe, validate, compare, import and hand out editions of the benchmark.")
app.command("build", epilog=build.EXAMPLE)(build.build)
app.command("fetch", epilog=fetch.EXAMPLE)(fetch.fetch)
app.command("catalog", epilog=catalog.EXAMPLE)(catalog.catalog)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.command("template", epilog=template.EXAMPLE)(template.template)
app.command("info", epilog=info.EXAMPLE)(info.info)
app.command("validate", epilog=validate.EXAMPLE)(validate.validate)
app.command("import", epilog=release.EXAMPLE)(release.import_release)
app.command("diff", epilog=diff.EXAMPLE)(diff.diff)
app.command("explain", epilog=explain.EXAMPLE)(explain.explain)
app.command("export", epilog=export.EXAMPLE)(export.export)
app.command("canary", epilog=canary.EXAMPLE)(canary.canary)


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)
