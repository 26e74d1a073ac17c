# The examples of -h show no option that -h does not explain. synth and plan have more kinds of examples than a
# dozen options; of plot, --max-ram belongs to one kind of picture.
for verb in search inspect weights design report plot verify diff gen convert join; do
    "$phema" $verb -h >help
    sed -n '/^Examples/,/^[A-Z][a-z]*$/p' help | grep -oE -- ' --[a-z-]+' | sort -u |
        grep -vE 'synth|--max-ram|--weights|--profile-memory|--ckpt' | while read -r option; do
        grep -qE -- "^ .*$option( |\$)" help || echo "$verb: $option is not in its -h"
    done
done
sed -n '/^Examples/,/^[A-Z][a-z]*$/p' help | grep -c posthoc-ema
