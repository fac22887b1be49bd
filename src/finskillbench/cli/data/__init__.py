"""`finskillbench data`: fetch, build, describe, validate, compare and import editions."""

from __future__ import annotations

import typer

from finskillbench.cli.data import build, info
from finskillbench.cli.display import console
from finskillbench.cli.groups import ExtensibleGroup

app = typer.Typer(
    cls=ExtensibleGroup, help="Fetch, build, describe, validate, compare and import editions of the benchmark."
)
app.command("build", epilog=build.BUILD_EXAMPLE)(build.build)
app.command("catalog", epilog=build.CATALOG_EXAMPLE)(build.catalog)
app.command("doctor", epilog=info.DOCTOR_EXAMPLE)(info.data_doctor)
app.command("template", epilog=build.TEMPLATE_EXAMPLE)(build.template)
app.command("info", epilog=info.INFO_EXAMPLE)(info.info)
app.command("validate", epilog=build.VALIDATE_EXAMPLE)(build.validate)
app.command("import", epilog=build.RELEASE_EXAMPLE)(build.import_release)
app.command("diff", epilog=info.DIFF_EXAMPLE)(info.diff)
app.command("explain", epilog=info.EXPLAIN_EXAMPLE)(info.explain)


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)
