"""Does what an interpreter of Hermes is asked for, with the modules beside this file in place of Hermes."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
if "-c" in sys.argv:
    exec(sys.argv[sys.argv.index("-c") + 1])
else:
    runpy.run_path(sys.argv[-1], run_name="__main__")
