#!/usr/bin/env bash
# A failed torch.distributed.checkpoint.load or save passes through "except Exception".
#
# CheckpointException, in which both wrap what went wrong on any rank, is derived from BaseException, as KeyboardInterrupt is. A
# trainer's "try: dcp.load(...) except Exception: start anew" ends instead, also in a single process without a process group.
# Seen with torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch, torch.distributed.checkpoint as dcp
dcp.save({"a": torch.zeros(2)}, checkpoint_id="ckpt")
try:
    try:
        dcp.load({"b": torch.zeros(2)}, checkpoint_id="ckpt")  # a tensor that is not there
    except Exception as error:
        print("caught as Exception:", type(error).__name__)
except BaseException as error:
    print("passed through as", type(error).__name__, "of", type(error).__base__.__name__)
END
diff found - <<'END'
passed through as CheckpointException of BaseException
END
