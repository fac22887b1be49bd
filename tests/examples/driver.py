"""The command line on a small registry: one subtask of risk management, few remediations, and what is installed beside.

python driver.py data build --out DIR
"""

import sys
from dataclasses import replace

from finskillbench import domains
from finskillbench.domains import risk

# All portfolios: among fewer there are not enough that comply with their mandate, and the edition fails its check.
FEW = {**risk.risk_settings(), "remediation_pairs": 4}

risk.risk_settings = lambda episodes: FEW
risk.DOMAIN = replace(risk.DOMAIN, subtasks=risk.DOMAIN.subtasks[:1])
domains._OURS = ("risk",)

if __name__ == "__main__":
    from finskillbench.cli import main

    sys.exit(main())
