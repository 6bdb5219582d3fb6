/** One setting of systemd.exec(5) or systemd.service(5); a name may come twice. */
export type Setting = readonly [name: string, value: string]

/** Only processes of this kind may be made: what bubblewrap needs, and nothing else. */
const NAMESPACES: Setting = ['RestrictNamespaces', 'user mnt pid net ipc uts cgroup']

/** Kept by seccomp and rlimits, which a manager without privileges can set, too. */
const UNPRIVILEGED: readonly Setting[] = [
  ['NoNewPrivileges', 'yes'],
  ['RestrictRealtime', 'yes'],
  ['LockPersonality', 'yes'],
  NAMESPACES,
  // netlink: bubblewrap brings up the loopback of a network namespace
  ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK'],
  ['SystemCallArchitectures', 'native'],
  // a list of what is refused: any list of what is allowed kills Node or bubblewrap sooner or later
  ['SystemCallFilter', '~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap syslog'],
  ['SystemCallErrorNumber', 'EPERM'],
  ['UMask', '0077'],
  ['LimitCORE', '0'],
]

/** Mounts, capabilities and user namespaces: the system's manager alone can set these. */
const PRIVILEGED: readonly Setting[] = [
  ['CapabilityBoundingSet', ''],
  ['AmbientCapabilities', ''],
  ['PrivateDevices', 'yes'],
  ['PrivateIPC', 'yes'],
  ['ProtectProc', 'invisible'],
  ['ProtectKernelModules', 'yes'],
  ['ProtectClock', 'yes'],
  ['RemoveIPC', 'yes'],
  ['KeyringMode', 'private'],
  ['ProtectSystem', 'strict'],
]

/**
 * What a unit is confined to although sandboxes start in it. Left out: RestrictSUIDSGID, which answers openat2(2) with ENOSYS, and bubblewrap 0.12 opens its
 * sources with that; ProtectKernelLogs, which covers /proc/kmsg, and then the kernel lets nobody unprivileged mount a /proc (what else it does, PrivateDevices,
 * the empty bounding set and the filter do); ProtectControlGroups, which makes the delegated cgroup read-only; PrivateUsers, from inside which the founder's own command line is a
 * process of a foreign user namespace that the bus host may not look at, and so refuses. docs/service.md has the whole table.
 */
export const hardeningOf = (scope: 'system' | 'user'): readonly Setting[] => (scope === 'system' ? [...UNPRIVILEGED, ...PRIVILEGED] : UNPRIVILEGED)
