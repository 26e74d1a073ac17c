# The list marks tensors in attributes: of a state_dict (torch/attributes.pt), and of EDM2's objects.
list() {
    "$phema" inspect --json "$1" | tr -d '"' | tr '{' '\n' |
        sed -n 's/^name: \([^,]*\).* kind: \(a.*\)}.*/\1: \2/p'
}
list "$fixtures/torch/attributes.pt"
list "$fixtures/edm2_attributes/network-snapshot-0000004-0.050.pkl"
"$phema" inspect "$fixtures/edm2_attributes/network-snapshot-0000004-0.050.pkl"
"$phema" inspect -v "$fixtures/edm2_attributes" | sed -n '/by synth/,$p'
