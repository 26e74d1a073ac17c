# No usual choice and no smaller number of widths is better in the same disk; every choice is better
# than those of less disk.
for options in "--sigma-rel 0.02:0.25" "--sigma-rel 0.05:0.1 --at 20k,50k" "--profile ema:2000" \
    "--sigma-rel 0.1:0.28 --after 50k" "--sigma-rel 0.03:0.2 --trainer ema-pytorch" \
    "--profile window:20k --motion fall"; do
    # shellcheck disable=SC2086 # options are several words
    "$phema" design --until 100k --model 4M --disk 100M $options --json >out || exit
    python3 - "$options" <<'END'
import json, sys
plan = json.load(open("out"))
errors = [c["worst_error"] for c in plan["choices"]]
disks = [c["disk_bytes"] for c in plan["choices"]]
chosen = plan["choices"][plan["chosen"]]
others = {o["name"]: o["worst_error"] for o in plan["others"]}
usual = [others[n] for n in ("EDM2", "ema-pytorch", "torchtitan", "raw alone") if n in others]
print(sys.argv[1], errors == sorted(errors)[::-1], disks == sorted(disks), disks[-1] <= 100e6,
      chosen["times"][-1] == 100000, min(usual) >= chosen["worst_error"], len(usual) >= 3)
END
done
