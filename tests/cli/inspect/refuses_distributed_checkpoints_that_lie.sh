exec 2>&1
cp -r "$fixtures/dcp/two_ranks" cut
truncate -s 9081 cut/__1_0.distcp
cp -r "$fixtures/dcp/two_ranks" gone
rm gone/__1_0.distcp
cp -r "$fixtures/dcp/two_ranks" outside
sed -i 's|__1_0.distcp|../x/1.distc|' outside/.metadata
mkdir empty other
touch empty/.metadata
printf '\200\004}.' >other/.metadata
for directory in cut gone outside empty other; do
    "$phema" inspect "$directory"
    echo "$?"
done
