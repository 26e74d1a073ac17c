#!/usr/bin/env bash
# An average that is copied into a model inside torch.autocast is not evaluated: the model goes on with the old parameters.
#
# autocast keeps the bfloat16 casts of parameters that require gradients until the outermost block ends, and looks them up by
# tensor, not by version. So "store, copy the EMA in, validate, restore" within one block scores the parameters themselves if the
# model has computed before in it, in torch.no_grad() too. After the block, or after torch.clear_autocast_cache(), the average
# counts. load_state_dict is no better than copy_, unless it assigns other tensors. Parameters without requires_grad are not kept.
# Seen with torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import copy, torch

def scores(change, between=lambda: None, **context):
    """What a model gives before and after its weight of 1 becomes that of the average, 2."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    average = copy.deepcopy(model)
    torch.nn.init.constant_(average.weight, 2)
    x = torch.ones(1, 1)
    if context.get("frozen"):
        model.requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(not context.get("no_grad")):
        before = model(x).item()
        change(model, average)
        between()
        inside = model(x).item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return f"{before:g}, then {inside:g} in the block, {model(x).item():g} after it"

def copies(model, average):
    with torch.no_grad():
        model.weight.copy_(average.weight)

def loads(model, average):
    model.load_state_dict(average.state_dict())

def assigns(model, average):
    model.load_state_dict(average.state_dict(), assign=True)

print("copy_:", scores(copies))
print("load_state_dict:", scores(loads))
print("load_state_dict(assign=True):", scores(assigns))
print("copy_, clear_autocast_cache:", scores(copies, torch.clear_autocast_cache))
print("copy_, no requires_grad:", scores(copies, frozen=True))
print("copy_, in no_grad:", scores(copies, no_grad=True))
END
diff found - <<'END'
copy_: 1, then 1 in the block, 2 after it
load_state_dict: 1, then 1 in the block, 2 after it
load_state_dict(assign=True): 1, then 2 in the block, 2 after it
copy_, clear_autocast_cache: 1, then 2 in the block, 2 after it
copy_, no requires_grad: 1, then 2 in the block, 2 after it
copy_, in no_grad: 1, then 1 in the block, 2 after it
END
