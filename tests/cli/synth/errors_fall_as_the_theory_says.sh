# Compares averages from snapshots of 0.05 and 0.10, at 8 and 64 times, with the exact ones. The profile's squared
# error falls as 1/n^4 (docs/solver.md). So 8 times as many snapshots reduce errors against the truth far more than
# 8-fold, until rounding of the stored dtype dominates. Rounding is about its relative rms times |w|.
sigmas=0.03,0.075,0.15,0.25
error() { "$phema" diff --json "$1" "$2" | sed -n 's/.*"rel_l2": \([^,]*\),.*/\1/p' | head -n 1; }
for dtype in f32 f16 bf16; do
    for count in 8 64; do
        "$phema" gen -q --count $count --steps 8192 --dtype $dtype --truth $sigmas run >/dev/null
        for metric in profile walk; do
            "$phema" synth -q --metric $metric --dtype f32 --sigma-rel $sigmas run $metric/ >/dev/null
        done
        for sigma in 0.030 0.075 0.150 0.250; do
            name=0008192-$sigma.safetensors
            echo "$dtype $count $sigma $(error profile/phema-$name run/truth/truth-$name)" \
                "$(error walk/phema-$name run/truth/truth-$name)"
        done
        rm -r run profile walk
    done
done >errors
awk '
    function claim(is_true, text) { print (is_true ? "yes: " : "NO: ") text }
    { profile[$1, $2, $3] = $4; walk[$1, $2, $3] = $5 }
    END {
        split("f32 f16 bf16", dtypes, " ")
        split("0.030 0.075 0.150 0.250", sigmas, " ")
        rounding["f32"] = 2.4e-8; rounding["f16"] = 1.92e-4; rounding["bf16"] = 1.53e-3
        norm["0.030"] = 12; norm["0.075"] = 1.5; norm["0.150"] = 1.5; norm["0.250"] = 1.5
        for (s = 1; s <= 4; s++)
            claim(profile["f32", 64, sigmas[s]] < profile["f32", 8, sigmas[s]] / 16,
                  "f32 " sigmas[s] ": 64 times are 16 times nearer than 8 with the profile metric")
        for (d = 2; d <= 3; d++)
            for (s = 1; s <= 4; s++)
                claim(walk[dtypes[d], 64, sigmas[s]] < 3 * rounding[dtypes[d]] * norm[sigmas[s]],
                      dtypes[d] " " sigmas[s] ": 64 times leave little but rounding")
        for (d = 1; d <= 3; d++)
            for (n = 8; n <= 64; n *= 8)
                claim(walk[dtypes[d], n, "0.250"] < profile[dtypes[d], n, "0.250"],
                      dtypes[d] " 0.250: walk beats profile at " n " times")
    }' errors
