# Averages that were updated every 5 steps do not match their labels. Weights that trust the labels (the
# libraries' own) are far off; those of the true profiles are not.
# shellcheck disable=SC2086 # options are several words
number() { grep -o "\"$1\": [^,}]*" | head -n 1 | sed 's/.*: //'; }
predicted() { sed -n 's/.*"total": [^,]*, "profile": \([^,]*\),.*/\1/p' | head -n 1; }
for library in ema_pytorch posthoc_ema; do
    for sigma in 0.10 0.15 0.20; do
        true_profile="--input-sigma 0.05,0.28 --update-every 5 --sigma-rel $sigma"
        "$phema" weights -q --json $true_profile --ridge none "$fixtures/$library/snapshots" >ours
        "$phema" weights -q --json $true_profile --weights "$fixtures/$library/weights_$sigma.txt" \
            "$fixtures/$library/snapshots" >theirs
        awk -v ours="$(number profile_error <ours)" -v theirs="$(number profile_error <theirs)" \
            -v ours_walk="$(predicted <ours)" -v theirs_walk="$(predicted <theirs)" \
            -v library=$library -v sigma=$sigma 'BEGIN {
                print library, sigma, (ours_walk * 5 < theirs_walk ? "predicted 5 times nearer" : ours_walk " " theirs_walk),
                    (ours * 2 < theirs ? "and nearer in profile" : ours " " theirs) }'
    done
done
