# shellcheck shell=bash
# What the stories share. They run as root in a machine that is thrown away (.config/machine-test.sh), with Mosaic installed as `mosaic`.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
cd /

USER_NAME=ada
UNIT=mosaic-main.service

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*"
  exit 1
}

# The bare environment of a login, so that nothing of root's gets in.
as_ada() { env -i PATH="$PATH" LANG=C.UTF-8 TERM=dumb HOME=/home/$USER_NAME XDG_RUNTIME_DIR="/run/user/$(id -u $USER_NAME)" setpriv --reuid $USER_NAME --regid $USER_NAME --init-groups sh -c 'cd; exec "$@"' sh "$@"; }

# ctl VERB…: systemctl of the manager that SCOPE names; show PROPERTY: of the unit there.
SCOPE=system
ctl() { if [[ $SCOPE == user ]]; then as_ada systemctl --user "$@"; else systemctl "$@"; fi; }
show() { ctl show -p "$1" --value $UNIT; }

# until_true WHAT COMMAND…: every fifth of a second, for two minutes.
until_true() {
  local what=$1 end=$((SECONDS + 120))
  shift
  while ((SECONDS < end)); do
    if "$@"; then return; fi
    sleep 0.2
  done
  journalctl --no-pager -o cat -n 40
  die "not within two minutes: $what"
}
is_active() { [[ $(show ActiveState) == active ]]; }
is_new() { is_active && [[ $(show MainPID) != "$1" && $(show MainPID) != 0 ]]; }

# rows VERB… | jq EXPRESSION: what the verb lists, as `rows`.
rows() { as_ada mosaic "$@" --json; }
jq() { node -e "const rows = JSON.parse(require('fs').readFileSync(0, 'utf8')).data; console.log($1)"; }
row_of() { rows ps | jq "rows.filter((row) => row.instance === '$1').map((row) => row.run + ' ' + row.pid).join('')"; }
pm_runs() { [[ $(rows ps 2>/dev/null | jq 'rows.some((row) => row.instance === "pm" && row.state === "running")' 2>/dev/null) == true ]]; }

# A project, and a team whose harness needs no program and no credential.
write_config() {
  as_ada rm -rf .config/mosaic .local/share/mosaic src
  as_ada sh -c 'mkdir -p src/stack && cd src/stack && git init -q -b main && echo one > file && git add . && git -c user.name=ada -c user.email=ada@example.invalid commit -qm one'
  as_ada mosaic init src/stack --template team --business main >/dev/null 2>&1
  as_ada sed -i -E 's/harness: [a-z-]+/harness: script/g' .config/mosaic/businesses/main.yaml
}

install_unit() {
  write_config
  if [[ $SCOPE == system ]]; then
    mosaic service install --system --as $USER_NAME --pm
  else
    loginctl enable-linger $USER_NAME
    until_true "the manager of $USER_NAME" as_ada systemctl --user is-active -q default.target
    as_ada mosaic service install --user --pm
  fi
}
uninstall_unit() { if [[ $SCOPE == system ]]; then mosaic service uninstall --system --as $USER_NAME; else as_ada mosaic service uninstall --user; fi; }

start_unit() {
  ctl start $UNIT || {
    journalctl --no-pager -o cat -n 40
    die 'systemctl start failed'
  }
}

# The directory in the cgroup2 hierarchy of a process; older machines have that hierarchy beside those of version 1.
unified() { printf '%s%s' "$(findmnt -nt cgroup2 -o TARGET | head -n 1)" "$(sed -n 's/^0:://p' "/proc/$1/cgroup")"; }
