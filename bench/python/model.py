# SPDX-License-Identifier: Apache-2.0
"""Shared by the tools: a module with given parameters, and a file of the result."""
import json

import torch
from safetensors.torch import save_file


def module_of(shapes_file):
    """A module with these parameters, in float32, in its initial state."""
    root = torch.nn.Module()
    with open(shapes_file, encoding="utf-8") as file:
        shapes = json.load(file)
    for name, shape in shapes.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if not hasattr(module, part):
                module.add_module(part, torch.nn.Module())
            module = getattr(module, part)
        module.register_parameter(last, torch.nn.Parameter(torch.zeros(shape), requires_grad=False))
    return root


def save(tensors, path):
    save_file({name: tensor.detach().half().contiguous() for name, tensor in tensors.items()}, path)
