# Under any name or link, a run never writes over a file that it reads, nor over another that it writes. --force
# does not change this.
# Rows: the writer and the file that is read; then the status for each way to name that file.
exec 2>&1
mkdir in && "$phema" gen -q --count 3 --params 1000 --no-sync in/run >/dev/null
snapshot=in/run/snapshot-0004096-0.100.safetensors
cp $snapshot in/into.safetensors
ls in/run/*.safetensors >in/list.txt
{
    echo '{"snapshots": ['
    for file in in/run/*.safetensors; do
        name=${file##*/} time=${name#snapshot-}
        sigma=${time#*-} sigma=${sigma%.safetensors}
        echo "{\"file\": \"run/$name\", \"time\": $((10#${time%%-*})), \"sigma_rel\": $sigma},"
    done | sed '$s/,$//'
    echo ']}'
} >in/manifest.json
printf '%s 0.5\n' snapshot-0004096-0.100.safetensors snapshot-0004096-0.050.safetensors >in/weights.txt
printf '%d 0.9\n' {1..4096} >in/table.txt
printf '0.1,2\n0.2,1\n' >in/scores.csv
"$phema" synth -q --no-sync --profile-memory in/memory.jsonl --sigma-rel 0.1 in/run before.safetensors >/dev/null
find in -type f -exec sha256sum {} + >sums

declare -A reads=(
    [snapshot]="--sigma-rel 0.1 in/run" [manifest.json]="--sigma-rel 0.1 in/manifest.json"
    [list.txt]="--sigma-rel 0.1 @in/list.txt" [weights.txt]="--weights in/weights.txt in/run"
    [table.txt]="--profile table:in/table.txt in/run" [into.safetensors]="--into in/into.safetensors --sigma-rel 0.1 in/run"
    [scores.csv]="--scores in/scores.csv --sigma-rel 0.1 in/run" [memory.jsonl]="--memory in/memory.jsonl --sigma-rel 0.1 in/run")
# shellcheck disable=SC2086 # options are several words
writes() { # who writes, to which name, what is read: a word each
    local options
    read -ra options <<<"${reads[$3]-}"
    case $1 in
    memory) "$phema" synth -q -f --no-sync "${options[@]}" --profile-memory "$2" out.safetensors ;;
    out) "$phema" synth -q -f --no-sync "${options[@]}" "$2" ;;
    picture) "$phema" plot -q -f profiles "${options[@]}" -o "$2" ;;
    numbers) "$phema" plot -q -f profiles "${options[@]}" -o picture.svg --csv "$2" ;;
    sweep) "$phema" plot -q -f sweep in/scores.csv -o "$2" ;;
    stages) "$phema" plot -q -f memory in/memory.jsonl -o "$2" ;;
    page) "$phema" report -q -f "${options[@]}" -o "$2" ;;
    scores) "$phema" search -q -f --exec 'echo 1 {}' --score-regex ^1 --coarse 2 --sigma-rel 0.05:0.1 ${reads[$3]/--sigma-rel 0.1/} "${2%/*}" ;;
    tables) "$phema" gen -q -f --count 2 --params 100 --no-sync --input-profile table:in/table.txt "${2%/*}" ;;
    esac
}
row() { # who writes, what a name must end in, all that may be read
    local who=$1 end=$2 what file name way statuses message
    shift 2
    for what in "$@"; do
        file=in/$what statuses="" message=""
        [ "$what" = snapshot ] && file=$snapshot
        for way in itself link "hard link" "before it is whole"; do
            rm -rf x && mkdir x
            name=x/${end#/}
            [ "${end#/}" = "$end" ] && name=x/x$end
            case $way in
            itself) [ "$end" = "" ] || continue; name=$file ;;
            link) ln -s "$PWD/$file" "$name" ;;
            hard*) ln "$file" "$name" ;;
            before*) ln "$file" "$name.partial" ;;
            esac
            message=$(writes "$who" "$name" "$what" 2>&1)
            statuses+=", $way $?"
        done
        echo "$who, $what:${statuses#,}"
        echo "  ${message##*posthoc-ema: }"
        sha256sum --quiet -c sums || { rm -rf in && exit 1; }
    done
}
row memory "" snapshot manifest.json list.txt weights.txt table.txt into.safetensors
row out .safetensors snapshot manifest.json list.txt weights.txt table.txt into.safetensors
row picture .svg snapshot manifest.json list.txt weights.txt table.txt
row numbers "" snapshot manifest.json list.txt weights.txt table.txt
row sweep .svg scores.csv
row stages .svg memory.jsonl
row page .html snapshot manifest.json list.txt weights.txt table.txt scores.csv memory.jsonl
row scores /scores.csv snapshot manifest.json list.txt into.safetensors
row tables /table-table.txt table.txt

echo "- another file of the same run"
again() { # arguments; what is there stays
    local before
    before=$(find . -path ./in -prune -o -type f -exec sha256sum {} + | sort)
    "$phema" "$@" | sed 's/^/  /'
    echo "${PIPESTATUS[0]}"
    [ "$before" = "$(find . -path ./in -prune -o -type f -exec sha256sum {} + | sort)" ] || echo "something was changed: $*"
}
one=(synth -q -f --no-sync --sigma-rel 0.1 in/run)
rm -rf x out.safetensors
again "${one[@]}" out.safetensors --profile-memory out.safetensors
again "${one[@]}" out.safetensors --profile-memory ./out.safetensors
mkdir new
again "${one[@]}" new/out.safetensors --profile-memory new/out.safetensors
cp before.safetensors out.safetensors
ln -s out.safetensors link
ln out.safetensors hard
for name in out.safetensors "$PWD/out.safetensors" link hard out.safetensors.partial out.safetensors.journal; do
    again "${one[@]}" out.safetensors --profile-memory "$name" 2>&1 | sed "s|$PWD|@HERE@|g"
done
again "${one[@]}" --into in/into.safetensors out.safetensors --profile-memory out.safetensors.json
again "${one[@]}" out.safetensors.zst --profile-memory out.safetensors.zst.plain
again "${one[@]}" --shard-size 2k shards/ --profile-memory shards/model.safetensors.index.json
again synth -q -f --no-sync --sigma-rel 0.2,0.1 in/run '{sigma}.safetensors' --profile-memory 0.200.safetensors
again "${one[@]}" --part 1/2 out.safetensors --profile-memory out.safetensors.part-1-of-2
again plot -q -f profiles --sigma-rel 0.1 in/run -o a.svg --csv ./a.svg
"$phema" plot -q profiles --sigma-rel 0.1 in/run -o a.svg >/dev/null
ln -s a.svg b.csv
again plot -q -f profiles --sigma-rel 0.1 in/run -o a.svg --csv b.csv

echo "- a run that fails before it knows its files replaces nothing"
echo broken >in/run/snapshot-0000001-0.100.safetensors
again "${one[@]}" out.safetensors --profile-memory $snapshot
sha256sum --quiet -c sums
rm in/run/snapshot-0000001-0.100.safetensors
again "${one[@]}" --max-error 1e-9 out.safetensors --profile-memory out.safetensors
echo "- what is none of that is written, of a run that fails as well"
"$phema" "${one[@]}" --max-error 1e-9 out.safetensors --profile-memory memory.jsonl
echo "$? $(wc -l <memory.jsonl)"
"$phema" "${one[@]}" out.safetensors --profile-memory memory.jsonl
echo "$? $(wc -l <memory.jsonl)"
