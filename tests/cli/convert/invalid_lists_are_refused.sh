exec 2>&1
# shellcheck disable=SC2258 # the comma is the case
for list in 0.05:0.25:0.03 0.25:0.05:0.05 0.05:0.25 0.05:0.25:0 0.05:0.2:0.05:1 0.1,...,0.2 \
    ...,0.2 0.1,0.2,... '' 0.1, ,0.1 0.1,,0.2 0.1:0.2:nan 0:1:1e-9 '0.1 0.2'; do
    "$phema" convert --sigma-rel "$list"
    echo "$?"
done
