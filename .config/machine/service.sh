#!/usr/bin/env bash
# The life of the unit, as a system unit and as a user unit: start, launch, a crash of the bus host, reload, watchdog, stop. Exit 1 at the first
# thing that is not as it should be.
# shellcheck source=.config/machine/inside.sh
source "$(dirname "$0")/inside.sh"

try() {
  SCOPE=$1
  local pid run before
  say "== $SCOPE unit"
  install_unit
  if [[ $SCOPE == system ]]; then systemd-analyze verify --man=no "/etc/systemd/system/$UNIT"; else as_ada systemd-analyze --user verify --man=no ".config/systemd/user/$UNIT"; fi
  say 'verify: no complaint'

  start_unit
  pid=$(show MainPID)
  say "started: ActiveState=$(show ActiveState) MainPID=$pid StatusText=$(show StatusText) (systemctl start returned, so READY=1 came)"
  pm_runs || {
    as_ada mosaic ps -a --json
    die 'the PM does not run although the unit is ready'
  }
  as_ada mosaic launch coder >/dev/null
  read -r run _ < <(row_of coder)
  say "launched: coder $run"
  leaves
  say "doctor: $({ rows doctor sandbox limits service || true; } | jq 'rows.checks.map((check) => "\n  " + check.state + " " + check.name + ": " + check.message).join("")')"

  restart_by_hand "$pid"
  pid=$(show MainPID)

  before=$(row_of pm | cut -d' ' -f1)
  kill -9 "$pid"
  until_true 'the unit is back after SIGKILL' is_new "$pid"
  until_true 'the PM is back' pm_runs
  say "SIGKILL of $pid: back as $(show MainPID), NRestarts=$(show NRestarts), PM $before is now $(row_of pm | cut -d' ' -f1), env $(rows log --event launch | jq 'rows.filter((row) => row.instance === "pm").sort((a, b) => a.seq - b.seq).at(-1).env')"
  say "ended: $(rows log --event end | jq 'rows.map((row) => row.instance + " " + row.reason).join(", ")')"

  ctl reload $UNIT
  until_true 'the reload is over' is_active
  say "reload: ActiveState=$(show ActiveState), records config.reloaded in the trail: $(rows trail --kind config.reloaded | jq rows.length)"
  sleep 35
  is_active || die 'the watchdog ended it'
  [[ $(show NRestarts) == 1 ]] || die "it was restarted: NRestarts=$(show NRestarts)"
  say "35 s later: still MainPID=$(show MainPID), WatchdogUSec=$(show WatchdogUSec)"

  ctl stop $UNIT
  say "stopped: ActiveState=$(show ActiveState) Result=$(show Result) ExecMainStatus=$(show ExecMainStatus)"
  [[ $(show Result) == success ]] || die 'it did not stop in order'
  ! pgrep -u $USER_NAME bwrap >/dev/null || die 'a sandbox outlived the stop'

  second_host
  if [[ $SCOPE == system ]]; then
    drain
    hang
    say "security: $(systemd-analyze security --no-pager $UNIT | tail -n 1)"
  fi
  uninstall_unit
}

# `bus restart` goes through the unit where its manager is the caller's, and else says who may.
restart_by_hand() {
  local words status=0
  words=$(as_ada mosaic bus restart --drain 5s 2>&1) || status=$?
  say "bus restart --drain 5s: exit $status, $(tr '\n' ' ' <<<"$words")"
  if [[ $SCOPE == user ]]; then
    ((status == 0)) || die 'it was not restarted'
    is_new "$1" || die 'the unit does not hold the new host'
    until_true 'the PM is back' pm_runs
    as_ada mosaic launch coder >/dev/null
  else
    ((status != 0)) && [[ $words == *'systemctl restart'* && $(show MainPID) == "$1" ]] || die 'the unit was torn from its host'
  fi
}

# A second host for the same data root is refused with 11, and systemd does not try again.
second_host() {
  as_ada mosaic bus start --detach >/dev/null
  if ctl start $UNIT 2>/dev/null; then die 'a second host started'; fi
  say "a second host: Result=$(show Result) ExecMainStatus=$(show ExecMainStatus) NRestarts=$(show NRestarts)"
  as_ada mosaic bus stop >/dev/null
  ctl reset-failed $UNIT
}

# with_settings LINE… -- COMMAND: the unit with other settings while the command runs.
with_settings() {
  local drop_in=/run/systemd/system/$UNIT.d lines=()
  while [[ $1 != -- ]]; do
    lines+=("$1")
    shift
  done
  mkdir -p "$drop_in"
  printf '%s\n' '[Service]' "${lines[@]}" >"$drop_in/story.conf"
  systemctl daemon-reload
  "${@:2}"
  rm -r "$drop_in"
  systemctl daemon-reload
}

# A drain takes the time that it was given, however short systemd's own for a stop.
drain() { with_settings TimeoutStopSec=3 -- drain_long; }
works() { pgrep -u $USER_NAME -x sleep >/dev/null; }
drain_long() {
  local asked started answer=/tmp/answer
  ctl start $UNIT
  as_ada mosaic launch coder >/dev/null
  as_ada mosaic ask coder 'RUN sleep 9; echo slept' >$answer &
  asked=$!
  until_true 'the coder works' works
  started=$SECONDS
  as_ada mosaic bus stop --drain 60s >/dev/null
  wait $asked || die 'who asked got no answer'
  say "bus stop --drain 60s with TimeoutStopSec=3: after $((SECONDS - started)) s, who asked was told \"$(tail -n 1 $answer)\", Result=$(show Result) ExecMainStatus=$(show ExecMainStatus) NRestarts=$(show NRestarts)"
  [[ $(tail -n 1 $answer) == slept && $(show Result) == success ]] || die 'the drain was cut off'
}

# A bus host that hangs is ended by the watchdog, with its sandboxes, and comes back.
hang() { with_settings WatchdogSec=3 TimeoutAbortSec=3 TimeoutStopSec=3 -- hang_and_return; }
hang_and_return() {
  local pid
  ctl start $UNIT
  pid=$(show MainPID)
  kill -STOP "$pid"
  until_true 'the unit is back after it hung' is_new "$pid"
  until_true 'the PM is back' pm_runs
  say "SIGSTOP of $pid: $(journalctl --no-pager -o cat -u $UNIT | grep -oE 'Watchdog timeout.*' | tail -n 1) Back as $(show MainPID), NRestarts=$(show NRestarts)"
  ctl stop $UNIT
}

leaves() {
  local dir controllers
  dir=$(unified "$(show MainPID)")
  controllers=$(cat "$dir/cgroup.controllers")
  if [[ -z $controllers ]]; then
    say "cgroups: not tried, this kernel's controllers are in cgroup version 1 ($dir has none)"
    return
  fi
  # shellcheck disable=SC2010
  say "cgroups: $(ls "${dir%/host}" | grep -E '^(host|run-.*)$' | tr '\n' ' ')with $(cat "${dir%/host}/cgroup.subtree_control"); $(wc -w <"${dir%/host}/run-$run/cgroup.procs") processes of the coder in its own"
}

try system
try user
