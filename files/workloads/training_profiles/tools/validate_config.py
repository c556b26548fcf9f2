# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check training profiles: python tools/validate_config.py FILE…

Exit code 0: they can be used; 1: something is wrong; 2: a file cannot be read. Same as `python -m kit profile check`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(next(folder for folder in Path(__file__).resolve().parents if (folder / "kit").is_dir())))

from kit.commands import profile


def main() -> int:
    """Check the files; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    profile.add_check(parser)
    return profile.answered(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
