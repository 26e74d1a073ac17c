#!/usr/bin/env bash
# A team on two hosts that reach each other by TCP alone: two network namespaces with names of their own, joined by
# a pair of interfaces.
#   tests/mpi_hosts.sh PROGRAM MPI_PROGRAM LAUNCHER
set -u
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
PATH=$PATH:/usr/sbin:/sbin
a=phema$$a b=phema$$b
# shellcheck disable=SC2317 # called by trap
stop() {
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$work"
}
trap stop EXIT
make_hosts() {
    ip netns add "$a" && ip netns add "$b" &&
        ip link add va netns "$a" type veth peer name vb netns "$b" &&
        ip -n "$a" addr add 10.77.0.1/24 dev va && ip -n "$b" addr add 10.77.0.2/24 dev vb &&
        ip -n "$a" link set lo up && ip -n "$a" link set va up &&
        ip -n "$b" link set lo up && ip -n "$b" link set vb up &&
        ip netns exec "$a" unshare -u true
}
make_hosts >/dev/null 2>"$work/why" || {
    echo "skipped: no network namespaces here: $(tail -n 1 "$work/why"); to run it: sudo scripts/test -R mpi" >&2
    exit 77
}
# What a launcher calls in place of ssh: [OPTIONS] HOST COMMAND...
cat >agent <<END
#!/bin/bash
while [[ \$1 = -* ]]; do shift; done
space=$a
[ "\$1" = 10.77.0.2 ] && space=$b
exec ip netns exec \$space unshare -u bash -c 'hostname "\$0"; exec bash -c "\$1"' \$space "\${*:2}"
END
chmod +x agent

posthoc-ema gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
posthoc-ema synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run one/ >/dev/null
if [[ $launcher = *openmpi ]]; then
    start=("$launcher" --mca plm_rsh_agent "$PWD/agent" --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24
        --bind-to none -H '10.77.0.1:2,10.77.0.2:2' -wdir "$PWD" -n 4)
else
    start=("$launcher" -launcher ssh -launcher-exec "$PWD/agent" -localhost 10.77.0.1 -iface va -hosts '10.77.0.1:2,10.77.0.2:2' -n 4)
fi
timeout 120 ./agent 10.77.0.1 "${start[*]@Q}" "$mpi" synth -v --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run two/ >/dev/null 2>said </dev/null ||
    fail "two hosts: status $?: $(cat said)"
grep -q '^8 runs by 4 processes:' said || fail "two hosts: $(cat said)"
diff -r one two >&2 || fail "two hosts: other bytes"
exit $failed
