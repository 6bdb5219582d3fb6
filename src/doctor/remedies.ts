/** What a machine says about itself, as far as it decides on a remedy. */
export interface MachineFacts {
  /** PRETTY_NAME and ID of os-release(5). */
  readonly system: string
  readonly systemId: string
  readonly kernel: string
  /** /.dockerenv, or a container manager's mark. */
  readonly container: string | null
  /** Values of sysctls, absent ones null. */
  readonly userNamespaceClone: string | null
  readonly maxUserNamespaces: string | null
  readonly appArmorRestricts: string | null
}

export interface Diagnosis {
  /** Why bubblewrap said what it said. */
  readonly cause: string
  readonly remedy: string
}

interface Entry {
  readonly when: (words: string, machine: MachineFacts) => boolean
  readonly diagnosis: Diagnosis
}

const said =
  (pattern: RegExp) =>
  (words: string): boolean =>
    pattern.test(words)
const isWsl1 = ({ kernel }: MachineFacts): boolean => /microsoft/i.test(kernel) && !/wsl2/i.test(kernel)
const NO_NAMESPACE = /No permissions to create (a )?new namespace|Creating new namespace failed|setting up uid map|does not support user namespaces/i

const COVERED_PROC = /Can't mount proc on .*Operation not permitted/

/** Hardening that breaks bubblewrap, by what it says then; seen with systemd 257 and bubblewrap 0.12. */
const UNIT_SETTINGS: readonly { readonly words: RegExp; readonly setting: string }[] = [
  { words: /Can't open source .*Function not implemented/, setting: 'RestrictSUIDSGID' },
  { words: /overflowuid: No such file/, setting: 'ProcSubset=pid' },
  { words: /Can't set hostname .*Operation not permitted/, setting: 'ProtectHostname' },
  { words: /max_user_namespaces: Read-only file system/, setting: 'ProtectKernelTunables' },
  { words: /Address family not supported/, setting: 'RestrictAddressFamilies without AF_NETLINK' },
]

/** What is known to go wrong, the most particular first. */
const KNOWN: readonly Entry[] = [
  {
    when: said(/ is missing$/),
    diagnosis: {
      cause: 'bubblewrap is not installed',
      remedy: 'apt-get install bubblewrap (dnf install bubblewrap, pacman -S bubblewrap), or name it in system.yaml: sandbox: { bwrap: PATH }',
    },
  },
  {
    when: said(/ failed: (EACCES: permission denied, access |spawn \S+ EACCES)/),
    diagnosis: {
      cause: 'what lies there is no program that this user may run: a directory, or a file without its x bit',
      remedy: 'look at it: ls -ld PATH; then chmod +x PATH, or name another in system.yaml: sandbox: { bwrap: PATH }',
    },
  },
  ...UNIT_SETTINGS.map(({ words, setting }): Entry => ({
    when: said(words),
    diagnosis: {
      cause: `a systemd unit around this process sets ${setting}, which bubblewrap cannot work under`,
      remedy: `take ${setting} out of the unit or its drop-in (mosaic service install writes one that works)`,
    },
  })),
  {
    when: (words, machine) => NO_NAMESPACE.test(words) && isWsl1(machine),
    diagnosis: { cause: 'WSL 1 has no Linux kernel and no namespaces', remedy: 'in Windows: wsl --set-version DISTRIBUTION 2' },
  },
  {
    when: (words, { userNamespaceClone }) => NO_NAMESPACE.test(words) && userNamespaceClone === '0',
    diagnosis: {
      cause: 'this kernel lets no unprivileged user make a user namespace (kernel.unprivileged_userns_clone = 0)',
      remedy: 'sudo sysctl -w kernel.unprivileged_userns_clone=1 (to keep it: a line in /etc/sysctl.d/50-mosaic.conf)',
    },
  },
  {
    when: (words, { maxUserNamespaces }) => NO_NAMESPACE.test(words) && maxUserNamespaces === '0',
    diagnosis: {
      cause: 'this machine allows no user namespaces (user.max_user_namespaces = 0)',
      remedy: 'sudo sysctl -w user.max_user_namespaces=10000 (to keep it: a line in /etc/sysctl.d/50-mosaic.conf)',
    },
  },
  {
    when: said(/max_\*_namespaces exceeded|\(ENOSPC\)/),
    diagnosis: { cause: 'all user namespaces that this machine allows are taken', remedy: 'sudo sysctl -w user.max_user_namespaces=10000' },
  },
  {
    when: (words, { appArmorRestricts, container }) =>
      container === null &&
      (/loopback: Failed RTM_NEWADDR|setting up uid map: Permission denied/.test(words) || (NO_NAMESPACE.test(words) && appArmorRestricts === '1')),
    diagnosis: {
      cause: 'AppArmor takes the rights of a user namespace from programs without a profile that allows them (Ubuntu 23.10 and newer)',
      remedy:
        'give bubblewrap its profile: sudo apt-get install apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict',
    },
  },
  {
    when: (words, { container }) => container === null && COVERED_PROC.test(words),
    diagnosis: {
      cause: 'a systemd unit around this process covers parts of /proc, and then the kernel lets nobody unprivileged mount a new one',
      remedy: 'take ProtectKernelLogs and ProtectKernelTunables out of the unit or its drop-in (mosaic service install writes one that works)',
    },
  },
  {
    when: said(COVERED_PROC),
    diagnosis: {
      cause: 'a container covers parts of its /proc, and then the kernel lets nobody inside mount a new one',
      remedy:
        'Docker: docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined … (Podman: --security-opt unmask=ALL); systemd-nspawn: uncover /proc',
    },
  },
  {
    when: (words, { container }) => container !== null && (NO_NAMESPACE.test(words) || /Failed to make \/ slave|pivot_root|loopback: Failed/.test(words)),
    diagnosis: {
      cause: "the container's seccomp filter or AppArmor profile refuses namespaces or mounts",
      remedy:
        'Docker: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined … (no --privileged is needed)',
    },
  },
  {
    when: said(/Unknown option --/i),
    diagnosis: {
      cause: 'this bubblewrap is too old: 0.8 has all that is needed',
      remedy: 'install bubblewrap 0.8 or newer, or name one in system.yaml: sandbox: { bwrap: PATH }',
    },
  },
  {
    when: (words, { systemId }) => systemId === 'nixos' || /execvp \/bin\/sh: No such file/.test(words),
    diagnosis: {
      cause: 'the sandbox shows /usr, /bin and /lib, and this system keeps its programs elsewhere (NixOS: /nix/store)',
      remedy: 'run mosaic where programs lie in /usr: in a buildFHSEnv shell, or a container of another distribution',
    },
  },
  {
    when: said(/PR_SET_SECCOMP|CONFIG_SECCOMP/),
    diagnosis: { cause: 'this kernel was built without seccomp filters', remedy: 'boot a kernel with CONFIG_SECCOMP_FILTER=y' },
  },
  {
    when: said(/does not support user namespaces/),
    diagnosis: { cause: 'this kernel was built without user namespaces', remedy: 'boot a kernel with CONFIG_USER_NS=y' },
  },
  {
    when: said(/execvp .*Permission denied/),
    diagnosis: {
      cause: "the data root's file system is mounted noexec, and the runner's Node lies there",
      remedy: 'choose another dataRoot in system.yaml, or remount it with exec',
    },
  },
  {
    when: said(/no answer within/),
    diagnosis: { cause: 'bubblewrap hangs: a dead network mount is the usual reason', remedy: 'look for a mount that does not answer: findmnt, df' },
  },
  {
    when: said(/would be visible in the sandbox, but it/),
    diagnosis: {
      cause: 'a program lies where the sandbox must not look',
      remedy: 'move the data root, the project or the program, so that none holds another',
    },
  },
  {
    when: said(NO_NAMESPACE),
    diagnosis: {
      cause: 'this machine refuses namespaces to unprivileged users',
      remedy:
        'see what refuses: RestrictNamespaces of a systemd unit around this process; unshare --user --map-root-user true; dmesg | tail; then mosaic doctor kernel',
    },
  },
]

const UNKNOWN: Diagnosis = { cause: 'no known cause', remedy: 'mosaic doctor --bundle FILE writes what a bug report needs' }

/** Why the sandbox failed with these words on that machine, and what to do. Pure. */
export const diagnose = (words: string, machine: MachineFacts): Diagnosis => KNOWN.find(({ when }) => when(words, machine))?.diagnosis ?? UNKNOWN
