#!/usr/bin/env bash
# A power cut: the machine resets with sessions at work. After it the unit is back by itself, with its PM. First run: until the cut. Second: after it.
# shellcheck source=.config/machine/inside.sh
source "$(dirname "$0")/inside.sh"
state=/var/lib/mosaic-test/reboot

if [[ ! -e $state ]]; then
  say '== power cut'
  install_unit
  start_unit
  as_ada mosaic launch coder >/dev/null
  say "asked: $(as_ada mosaic ask pm 'SAY before the cut' | tail -n 1)"
  # acknowledged, and not yet answered when the power goes
  as_ada mosaic message send --to coder --class REQUEST -q 'RUN sleep 600' >/dev/null
  { cat /proc/sys/kernel/random/boot_id; row_of pm; row_of coder; rows trail head | jq 'rows.records + " " + rows.head'; } | tee "$state.new"
  sync "$state.new"
  mv "$state.new" "$state"
  sync "$state" "${state%/*}"
  echo 1 >/proc/sys/kernel/sysrq
  echo b >/proc/sysrq-trigger
  sleep 60
  die 'the machine did not reset'
fi

mapfile -t was <"$state"
until_true 'the PM is back' pm_runs
say "another boot: $([[ $(cat /proc/sys/kernel/random/boot_id) != "${was[0]}" ]] && echo yes)"
say "started by the machine: $(show ActiveState), NRestarts=$(show NRestarts); PM ${was[1]%% *} is now $(row_of pm | cut -d' ' -f1)"
say "ends: $(rows log --event end | jq 'rows.map((row) => row.instance + " " + row.run + " " + row.reason).join(", ")')"
[[ $(rows log --event end | jq 'rows.filter((row) => row.reason === "host-lost").length') == 2 ]] || die 'not one end each'
say "env of the new PM: $(rows log --event launch | jq 'rows.filter((row) => row.instance === "pm").sort((a, b) => a.seq - b.seq).at(-1).env')"
say "owed: $(rows message owed | jq 'JSON.stringify(rows.map((row) => [row.to ?? row.to_instance, row.from ?? row.from_instance]))')"
say "trail verify --head of before: $(as_ada mosaic trail verify --head "${was[3]##* }")"
ctl stop $UNIT
uninstall_unit
rm "$state"
