#!/usr/bin/env bash
# Paddle reads tensors of U16 in safetensors files as bfloat16: the number 16256 becomes 1.0.
#
# One would guess uint16, or an error. Paddle takes NumPy's uint16 for the bits of a bfloat16, in both directions. So a table of
# token numbers or counts turns into small floating-point values, without a warning, and is saved again as BF16. I16 and U32 are
# read as what they are. The other way round, paddle.save pickles bfloat16 parameters as uint16 arrays: a reader that averages
# their values averages bit patterns.
# Seen with paddlepaddle 3.3.1 (1 GB with what it needs) and safetensors 0.8.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q paddlepaddle==3.3.1 safetensors==0.8.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import json, pickle
import numpy, paddle, safetensors.numpy, safetensors.paddle

safetensors.numpy.save_file({name: numpy.array([16256, 16384], name) for name in ("int16", "uint16", "uint32")}, "a.safetensors")
read = safetensors.paddle.load_file("a.safetensors")
for name, tensor in sorted(read.items()):
    print(f"{name} [16256, 16384]: read as {str(tensor.dtype).split('.')[-1]} {tensor.astype('float32').tolist()}")
safetensors.paddle.save_file({"w": read["uint16"]}, "b.safetensors")
data = open("b.safetensors", "rb").read()
print("uint16 saved again:", json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["w"]["dtype"])
paddle.save({"w": paddle.to_tensor([1.0, 2.0]).astype("bfloat16")}, "c.pdparams")
array = pickle.load(open("c.pdparams", "rb"))["w"]
print(f"bfloat16 [1.0, 2.0] in the pickle of paddle.save: {array.dtype} {array.tolist()}")
END
diff found - <<'END'
int16 [16256, 16384]: read as int16 [16256.0, 16384.0]
uint16 [16256, 16384]: read as bfloat16 [1.0, 2.0]
uint32 [16256, 16384]: read as uint32 [16256.0, 16384.0]
uint16 saved again: BF16
bfloat16 [1.0, 2.0] in the pickle of paddle.save: uint16 [16256, 16384]
END
