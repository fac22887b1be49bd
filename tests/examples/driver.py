"""The command line on a small registry: one subtask of risk management, few portfolios, and what is installed beside.

python driver.py data build --out DIR
"""

import sys
from dataclasses import replace

from finskillbench import domains
from finskillbench.domains import risk

FEW = {**risk.risk_settings(), "portfolios_per_type": 9, "remediation_pairs": 4}

risk.risk_settings = lambda: FEW
risk.DOMAIN = replace(risk.DOMAIN, subtasks=risk.DOMAIN.subtasks[:1])
domains._OURS = ("risk",)

if __name__ == "__main__":
    from finskillbench.cli import main

    sys.exit(main())
