"""Let the policy beside these tests be imported by its name, as PYTHONPATH would."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
