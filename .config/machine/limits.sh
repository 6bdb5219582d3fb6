#!/usr/bin/env bash
# The limits of a role, kept by cgroups of version 2 below the unit: memory, pids, cpus, each tried by a session that goes beyond it.
# shellcheck source=.config/machine/inside.sh
source "$(dirname "$0")/inside.sh"

limit_coder() {
  as_ada sed -i '/^  coder:/,/^  reviewer:/ s/^      limits:/&\n        memory: 256M\n        pids: 64\n        cpus: 0.25\n        enforce: required/' .config/mosaic/businesses/main.yaml
  as_ada mosaic config check
}
enforced() { as_ada sh -c "cat .local/share/mosaic/launches/main/$1/bundle/manifest.json" | node -e 'const m = JSON.parse(require("fs").readFileSync(0, "utf8")); console.log(JSON.stringify(m.enforced ?? m.limits))'; }
ended() { rows log --event end | jq "rows.filter((row) => row.run === '$1').map((row) => row.reason + ', exitCode ' + row.exitCode + ', signal ' + row.signal).join()"; }
host_answers() { local start=${EPOCHREALTIME/./}; as_ada mosaic bus status >/dev/null; say "  meanwhile the bus host answered \`bus status\` in $(((${EPOCHREALTIME/./} - start) / 1000)) ms (a command line's own start is most of it)"; }

say "== limits: $(uname -r), $(findmnt -nt cgroup2 -o TARGET,OPTIONS | head -n 1)"
install_unit
limit_coder
start_unit
host=$(show MainPID)
before=$(row_of pm)
say "doctor: $({ rows doctor limits || true; } | jq 'rows.checks.map((check) => check.state + " " + check.name + ": " + check.message).join("\n  ")')"

as_ada mosaic launch coder >/dev/null
read -r run _ < <(row_of coder)
leaf=$(unified "$host")
leaf=${leaf%/host}/run-$run
say "coder $run: $(wc -w <"$leaf/cgroup.procs") processes are in $leaf: memory.max $(cat "$leaf/memory.max"), pids.max $(cat "$leaf/pids.max"), cpu.max $(cat "$leaf/cpu.max"); manifest: $(enforced "$run")"
(($(wc -w <"$leaf/cgroup.procs") >= 2)) || die 'pid 1 and the runner are not in a leaf of their own'

say 'cpus: a busy loop of 10 s on two threads'
as_ada mosaic ask coder --timeout 2m 'RUN for n in 1 2; do timeout 10 sh -c "while :; do :; done" & done; wait' >/dev/null
say "  cpu.stat: $(grep -E '^(usage_usec|nr_throttled|throttled_usec)' "$leaf/cpu.stat" | tr '\n' ' ')"
(($(sed -n 's/^nr_throttled //p' "$leaf/cpu.stat") > 0)) || die 'it was never throttled'

say 'pids: 200 processes at once'
words=$(as_ada mosaic ask coder --timeout 2m 'RUN for n in $(seq 200); do sleep 5 & done; wait' 2>&1 || true)
host_answers
say "  $(tail -n 2 <<<"$words" | tr '\n' ' '); at most $(cat "$leaf/pids.peak") at once, refused by the cgroup $(sed -n 's/^max //p' "$leaf/pids.events") times, else by RLIMIT_NPROC of the same number"
[[ $words == *'Cannot fork'* ]] || die 'it was never refused a process'
(($(cat "$leaf/pids.peak") <= 64)) || die 'there were more than 64'

say 'memory: a process that fills it'
[[ -n $(row_of coder) ]] || {
  as_ada mosaic launch coder >/dev/null
  read -r run _ < <(row_of coder)
  leaf=${leaf%/*}/run-$run
}
as_ada mosaic ask coder --timeout 1s 'RUN tail /dev/zero' >/dev/null 2>&1 || true
host_answers
as_ada mosaic wait "$run" || true
say "  $run ended: $(ended "$run")"
[[ $(ended "$run") == out-of-memory* ]] || die 'it did not end as out-of-memory'
[[ $(show MainPID) == "$host" && $(row_of pm) == "$before" ]] || die 'the bus host or the PM went with it'
say "  the bus host is still $host, the PM is still ${before%% *}; leaves left: $(find "${leaf%/*}" -mindepth 1 -maxdepth 1 -type d -printf '%f ')"

ctl stop $UNIT
say "stopped: Result=$(show Result)"
uninstall_unit

say '== limits: required, and no cgroup of ours (bus start by hand)'
write_config
limit_coder
as_ada mosaic bus start --detach >/dev/null
as_ada mosaic launch coder 2>&1 && die 'it was launched without its limits' || say "exit $?"
as_ada mosaic bus stop >/dev/null
