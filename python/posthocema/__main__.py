# SPDX-License-Identifier: Apache-2.0
"""``python -m posthocema`` is the program ``posthoc-ema``."""

import os
import shutil
import sys
import sysconfig

NAME = "posthoc-ema"


def find_program() -> str:
    """The program of this installation, else the first one on PATH."""
    schemes = [sysconfig.get_path("scripts")]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        schemes.append(sysconfig.get_path("scripts", user))
    paths = (os.path.join(directory, NAME) for directory in schemes)
    found = next((path for path in paths if os.access(path, os.X_OK)), None) or shutil.which(NAME)
    if not found:
        sys.exit(f"{NAME}: is neither in {' nor in '.join(schemes)} nor on PATH")
    return found


if __name__ == "__main__":
    os.execv(find_program(), [NAME, *sys.argv[1:]])
