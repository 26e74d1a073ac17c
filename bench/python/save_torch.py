# SPDX-License-Identifier: Apache-2.0
"""Saves snapshots of gen, PREFIX-TIME-SIGMA.safetensors, by torch or as pickles, in the layouts of others.

  save_torch.py pt|pkl|ema-pytorch|posthoc-ema FROM TO
"""
import json
import pathlib
import pickle
import struct
import sys

import torch

kind, source, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
for file in sorted(source.glob("*.safetensors")):
    data = bytearray(file.read_bytes())
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float16, offset=8 + size + begin,
                                count=(end - begin) // 2)
        state[name] = flat.reshape(entry["shape"]).clone()
    prefix, time, sigma = file.stem.rsplit("-", 2)
    clock = {"initted": torch.tensor(True), "step": torch.tensor(int(time))}
    index = {"0.050": 0, "0.280": 1}.get(sigma)
    if kind == "pt":
        torch.save(state, out / ("0.%d.%s.pt" % (int(time), sigma)))
    elif kind == "ema-pytorch":
        # it also converts its counters
        clock = {key: value.half() for key, value in clock.items()}
        state = {**clock, **{"ema_model." + name: tensor for name, tensor in state.items()}}
        torch.save(state, out / ("%d.%d.pt" % (index, int(time))))
    elif kind == "posthoc-ema":
        torch.save({**state, **clock}, out / ("%d.%d.pt" % (index, int(time))))
    else:
        with open(out / ("net-%s-%s.pkl" % (time, sigma)), "wb") as to:
            pickle.dump({"ema": state}, to, protocol=4)
