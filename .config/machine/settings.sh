#!/usr/bin/env bash
# The whole sandbox policy under each setting of systemd alone, as a program of the machine's manager: what docs/service.md says of it.
# shellcheck source=.config/machine/inside.sh
source "$(dirname "$0")/inside.sh"

say "== each setting alone: $(uname -r)"
write_config
while IFS= read -r setting; do
  words=$(systemd-run --wait --pipe --quiet -p User=$USER_NAME ${setting:+-p "$setting"} mosaic doctor sandbox --json 2>&1 </dev/null || true)
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
