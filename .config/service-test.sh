#!/usr/bin/env bash
# Tries the systemd unit on a real systemd: boots a Debian 13 in a container, installs this clone's build there, and lets the unit live through a
# start, a launch, a crash of the bus host, a reload and a stop; once as a system unit, once as a user unit. Prints what it saw; exit 1 at the first
# thing that is not as it should be.
#   .config/service-test.sh [ROOT]    ROOT: where the machine is made, and kept for the next time (default: a temporary place, removed)
# Needs root, debootstrap, systemd-container and network for apt. The build (npm run build) and node_modules come from this clone.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

DIST=trixie
PACKAGES=ca-certificates,systemd,systemd-sysv,dbus,libpam-systemd,procps,bubblewrap,git,nodejs
USER_NAME=ada
UNIT=mosaic-main.service
OPT=/opt/mosaic

say() { printf '%s\n' "$*"; }
die() {
  printf 'service-test: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || die 'needs root, which boots containers'
for program in debootstrap systemd-nspawn nsenter; do command -v "$program" >/dev/null || die "$program is missing: apt-get install debootstrap systemd-container"; done
[[ -e dist/cli.mjs ]] || die 'not built: npm run build'

KEEP=${1:+yes}
ROOT=${1:-$(mktemp -d /var/tmp/mosaic-service-test.XXXXXX)}
MACHINE=$ROOT/machine
LEADER=''
NSPAWN=''

clean_up() {
  if [[ -n $LEADER ]]; then nsenter -t "$LEADER" -a systemctl poweroff --no-wall 2>/dev/null || true; fi
  if [[ -n $NSPAWN ]]; then
    for _ in $(seq 100); do
      [[ -d /proc/$NSPAWN ]] || break
      sleep 0.2
    done
    if [[ -d /proc/$NSPAWN ]]; then kill -9 "$NSPAWN" || true; fi
  fi
  if [[ -z $KEEP ]]; then rm -rf "$ROOT"; fi
}
trap clean_up EXIT

# ---- the machine ----

mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | sed -nE '1s#/? *$##p'
}

make_machine() {
  if [[ ! -e $MACHINE/etc/debian_version ]]; then
    say "making a Debian $DIST (log: $ROOT/make.log)"
    mkdir -p "$MACHINE"
    debootstrap --variant=minbase --include=$PACKAGES $DIST "$MACHINE" "$(mirror)" >"$ROOT/make.log" 2>&1 || die "debootstrap failed: $(tail -n 1 "$ROOT/make.log")"
  fi
  echo mosaic-test >"$MACHINE/etc/hostname"
  printf '127.0.0.1 localhost mosaic-test\n' >"$MACHINE/etc/hosts"
  chroot "$MACHINE" id $USER_NAME >/dev/null 2>&1 || chroot "$MACHINE" useradd --create-home --shell /bin/bash $USER_NAME
  # They would set sysctls and devices of the machine that the container runs on.
  # what an earlier test may have left
  rm -rf "$MACHINE"/etc/systemd/system/{,*.wants/}mosaic-* "$MACHINE"/home/$USER_NAME/.config/systemd "$MACHINE/var/lib/systemd/linger/$USER_NAME" "$MACHINE/etc/mosaic"
  chroot "$MACHINE" systemctl mask systemd-sysctl.service systemd-udevd.service >/dev/null 2>&1
}

# The clone's own build and the packages that it needs at run time; they run where Node has the same ABI.
install_build() {
  rm -rf "${MACHINE:?}$OPT"
  mkdir -p "$MACHINE$OPT"
  cp -r bin dist package.json "$MACHINE$OPT/"
  npm ls --omit=dev --all --parseable 2>/dev/null | sed -n "s#^$PWD/##p" | sort -u | tar -cf - --exclude='*/build/Release/obj*' --exclude='*/deps/*' -T - | tar -xf - -C "$MACHINE$OPT"
  chown -R root:root "$MACHINE$OPT"
  ln -sf $OPT/bin/mosaic.js "$MACHINE/usr/local/bin/mosaic"
}

# nspawn covers parts of /proc, and then the kernel lets nobody unprivileged mount a new one: uncover them.
uncover_proc() {
  # shellcheck disable=SC2016
  nsenter -t "$LEADER" -a sh -c 'for i in 1 2 3; do awk "\$2 ~ \"^/proc/\" {print \$2}" /proc/mounts | sort -r | while read -r m; do umount -l "$m" 2>/dev/null || :; done; done'
}

boot() {
  env -i PATH="$PATH" systemd-nspawn -q --register=no --keep-unit --console=pipe --resolv-conf=copy-host -D "$MACHINE" --boot </dev/null >"$ROOT/boot.log" 2>&1 &
  NSPAWN=$!
  for _ in $(seq 150); do
    sleep 0.2
    LEADER=$(tr ' ' '\n' <"/proc/$NSPAWN/task/$NSPAWN/children" 2>/dev/null | head -n 1) || true
    if [[ -n $LEADER && $(nsenter -t "$LEADER" -a systemctl is-system-running 2>/dev/null) =~ running|degraded ]]; then
      uncover_proc
      return
    fi
  done
  die "the container did not boot: $(tail -n 1 "$ROOT/boot.log")"
}

# ---- in the machine ----

root() { nsenter -t "$LEADER" -a env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }
as_ada() { root runuser -u $USER_NAME -- env HOME=/home/$USER_NAME XDG_RUNTIME_DIR="/run/user/$(root id -u $USER_NAME)" sh -c 'cd; exec "$@"' sh "$@"; }

# show PROPERTY: of the unit, in the manager that SCOPE names.
ctl() { if [[ $SCOPE == user ]]; then as_ada systemctl --user "$@"; else root systemctl "$@"; fi; }
show() { ctl show -p "$1" --value $UNIT; }

journal() { root journalctl --no-pager -o cat -n 40 >&2 || true; }

# until_true WHAT COMMAND…: every fifth of a second, for a minute.
until_true() {
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@"; then return; fi
    sleep 0.2
  done
  journal
  die "not within a minute: $what"
}
is_active() { [[ $(show ActiveState) == active ]]; }
is_new() { is_active && [[ $(show MainPID) != "$1" && $(show MainPID) != 0 ]]; }
pm_runs() { [[ $(rows ps 2>/dev/null | jq 'rows.some((row) => row.instance === "pm" && row.state === "running")' 2>/dev/null) == true ]]; }
# rows VERB… | jq EXPRESSION: what the verb lists, as `rows`.
rows() { as_ada mosaic "$@" --json; }
jq() { root node -e "const rows = JSON.parse(require('fs').readFileSync(0, 'utf8')).data; console.log($1)"; }
row_of() { rows ps | jq "rows.filter((row) => row.instance === '$1').map((row) => row.run + ' ' + row.pid).join('')"; }

write_config() {
  as_ada rm -rf .config/mosaic .local/share/mosaic src
  as_ada sh -c 'mkdir -p src/stack && cd src/stack && git init -q -b main && echo one > file && git add . && git -c user.name=ada -c user.email=ada@example.invalid commit -qm one'
  as_ada mosaic init src/stack --template team --business main >/dev/null
  # The harness that needs no program and no credential, and limits that only a cgroup keeps.
  as_ada sed -i -E 's/harness: [a-z-]+/harness: script/g' .config/mosaic/businesses/main.yaml
}

try() {
  SCOPE=$1
  local pid run before
  say "== $SCOPE unit"
  write_config
  if [[ $SCOPE == system ]]; then root mosaic service install --system --as $USER_NAME --pm; else
    root loginctl enable-linger $USER_NAME
    until_true "the manager of $USER_NAME" as_ada systemctl --user is-active -q default.target
    as_ada mosaic service install --user --pm
  fi
  if [[ $SCOPE == system ]]; then root systemd-analyze verify --man=no "/etc/systemd/system/$UNIT"; else as_ada systemd-analyze --user verify --man=no ".config/systemd/user/$UNIT"; fi
  say 'verify: no complaint'

  ctl start $UNIT || { journal; die 'systemctl start failed'; }
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

  before=$(row_of pm | cut -d' ' -f1)
  root kill -9 "$pid"
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
  ! root pgrep -u $USER_NAME bwrap >/dev/null || die 'a sandbox outlived the stop'

  second_host
  if [[ $SCOPE == system ]]; then hang; fi
  if [[ $SCOPE == system ]]; then say "security: $(root systemd-analyze security --no-pager $UNIT | tail -n 1)"; fi
  if [[ $SCOPE == system ]]; then root mosaic service uninstall --system --as $USER_NAME; else as_ada mosaic service uninstall --user; fi
}

# A second host for the same data root is refused with 11, and systemd does not try again.
second_host() {
  as_ada mosaic bus start --detach >/dev/null
  if ctl start $UNIT 2>/dev/null; then die 'a second host started'; fi
  say "a second host: Result=$(show Result) ExecMainStatus=$(show ExecMainStatus) NRestarts=$(show NRestarts)"
  as_ada mosaic bus stop >/dev/null
  ctl reset-failed $UNIT
}

# A bus host that hangs is ended by the watchdog, with its sandboxes, and comes back.
hang() {
  local pid drop_in=/run/systemd/system/$UNIT.d
  root mkdir -p "$drop_in"
  root sh -c "printf '[Service]\\nWatchdogSec=3\\nTimeoutAbortSec=3\\nTimeoutStopSec=3\\n' >$drop_in/hang.conf"
  root systemctl daemon-reload
  ctl start $UNIT
  pid=$(show MainPID)
  root kill -STOP "$pid"
  until_true 'the unit is back after it hung' is_new "$pid"
  until_true 'the PM is back' pm_runs
  say "SIGSTOP of $pid: $(root journalctl --no-pager -o cat -u $UNIT | grep -oE 'Watchdog timeout.*' | tail -n 1) Back as $(show MainPID), NRestarts=$(show NRestarts)"
  ctl stop $UNIT
  root rm -r "$drop_in"
  root systemctl daemon-reload
}

# unified PID: its directory in the cgroup2 hierarchy, which older machines have beside those of version 1.
unified() { printf '%s%s' "$(root findmnt -nt cgroup2 -o TARGET | head -n 1)" "$(root sed -n 's/^0:://p' "/proc/$1/cgroup")"; }
leaves() {
  local dir controllers
  dir=$(unified "$(show MainPID)")
  controllers=$(root cat "$dir/cgroup.controllers")
  if [[ -z $controllers ]]; then
    say "cgroups: not tried, this kernel's controllers are in cgroup version 1 ($dir has none)"
    return
  fi
  say "cgroups: $(root ls "${dir%/host}" | grep -E '^(host|r[0-9a-z]+)$' | tr '\n' ' ')with $(root cat "${dir%/host}/cgroup.subtree_control"); the coder is in $(unified "$(row_of coder | cut -d' ' -f2)")"
}

# The whole policy under each setting alone, as a program of the machine's manager: what docs/service.md says of it.
try_settings() {
  local setting words
  say '== each setting alone'
  while IFS= read -r setting; do
    words=$(root systemd-run --wait --pipe --quiet -p User=$USER_NAME ${setting:+-p "$setting"} mosaic doctor sandbox --json 2>&1 </dev/null || true)
    say "${setting:-(none)}: $(jq 'rows.checks[0].state + (rows.checks[0].state === "ok" ? "" : ": " + rows.checks[0].message)' <<<"$words" 2>/dev/null || tail -n 1 <<<"$words")"
  done <<'SETTINGS'

NoNewPrivileges=yes
CapabilityBoundingSet=
PrivateUsers=yes
PrivateDevices=yes
PrivateIPC=yes
PrivateTmp=yes
PrivateNetwork=yes
ProtectProc=invisible
ProcSubset=pid
ProtectSystem=strict
ProtectHome=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectClock=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
RestrictNamespaces=user mnt pid net ipc uts
RestrictNamespaces=user mnt pid net ipc uts cgroup
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
MemoryDenyWriteExecute=yes
LockPersonality=yes
RemoveIPC=yes
KeyringMode=private
UMask=0077
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SETTINGS
}

make_machine
install_build
boot
say "$(root sed -n 's/^PRETTY_NAME=//p' /etc/os-release), $(root systemctl --version | head -n 1), node $(root node --version), $(root bwrap --version), $(root git --version)"
try system
try user
try_settings
say 'service-test: all as it should be'
