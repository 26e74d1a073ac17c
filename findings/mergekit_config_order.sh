#!/usr/bin/env bash
# The same merge with mergekit has the config.json of one model in some runs, and that of the other model in others.
#
# Without base_model, as for linear merges, one would guess the config of the first model of the list. mergekit takes the first of
# a set, whose order changes with Python's random hashes. The tensors are the same bytes in every run. Chance decides
# between the configs where they differ, as here in the base of the rotary embedding.
# Seen with mergekit 0.1.5, transformers 5.24.0 and torch 2.15.0 (6 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q mergekit==0.1.5 transformers==5.24.0 torch==2.15.0 numpy==2.2.6
cat >models.py <<'END'
import torch, transformers

for name, theta in (("first", 1e4), ("second", 1e6)):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=16,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )
    transformers.LlamaForCausalLM(config).save_pretrained(name)
END
cat >merge.yaml <<'END'
merge_method: linear
models:
  - {model: ./first, parameters: {weight: 0.5}}
  - {model: ./second, parameters: {weight: 0.5}}
END
export HF_HUB_OFFLINE=1
venv/bin/python models.py 2>/dev/null
for seed in {0..29}; do # until both were seen; the chance of 30 runs alike is 2^-29
    PYTHONHASHSEED=$seed venv/bin/mergekit-yaml merge.yaml "run$seed" >/dev/null 2>&1
    venv/bin/python - "$seed" <<'END' >>runs
import hashlib, json, sys
folder = f"run{sys.argv[1]}"
theta = json.load(open(f"{folder}/config.json"))["rope_parameters"]["rope_theta"]
print(hashlib.sha256(open(f"{folder}/model.safetensors", "rb").read()).hexdigest(), {1e4: "first", 1e6: "second"}[theta])
END
    [ "$(cut -d ' ' -f 2 runs | sort -u | wc -l)" = 2 ] && break
done
{
    echo "configs: $(cut -d ' ' -f 2 runs | sort -u | xargs)"
    echo "different files of tensors: $(cut -d ' ' -f 1 runs | sort -u | wc -l)"
} | tee found
diff found - <<'END'
configs: first second
different files of tensors: 1
END
