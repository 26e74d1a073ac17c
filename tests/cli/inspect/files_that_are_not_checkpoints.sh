exec 2>&1
mkdir empty
mkfifo fifo
: >nothing
echo 'hello, this is not a checkpoint' >text
printf '\10\0\0\0\0\0\0\0{"a":1}' >short
head -c 300 "$fixtures/torch/plain.pt" >cut.pt
for path in missing empty fifo nothing text short cut.pt /dev/null; do
    timeout 120 "$phema" inspect "$path"
    echo "$?"
done
