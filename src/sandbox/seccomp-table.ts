/** System call numbers and which of them are refused. Numbers: the kernel's asm/unistd_64.h and asm-generic/unistd.h. */

export const ARCHITECTURES = {
  x64: { audit: 0xc000003e, column: 0 },
  arm64: { audit: 0xc00000b7, column: 1 },
} as const
export type Architecture = keyof typeof ARCHITECTURES

/** [x64, arm64]; null where the architecture has none. */
export type CallNumbers = Readonly<Record<string, readonly [number, number | null]>>

/** Answered EPERM: other processes' memory, the mount family, namespaces, kernel interfaces with a history of holes, the machine's own state. */
export const REFUSED: CallNumbers = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  // would hand over pid 1's descriptor of the env root's lock
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  setns: [308, 268],
  unshare: [272, 97],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  open_by_handle_at: [304, 265],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  fanotify_init: [300, 262],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  lookup_dcookie: [212, 18],
  iopl: [172, null],
  ioperm: [173, null],
  uselib: [134, null],
  modify_ldt: [154, null],
}

/** Answered ENOSYS: a filter cannot look into clone3's struct, and callers of these fall back to the older calls. */
export const ABSENT: CallNumbers = {
  clone3: [435, 435],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
}

/** Judged by an argument. */
export const CLONE = [56, 220] as const
export const IOCTL = [16, 29] as const
export const SOCKETS = { socket: [41, 198], socketpair: [53, 199] } as const

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
export const NAMESPACE_FLAGS = 0x7e020000
/** TIOCSTI types into the terminal of whoever started us; TIOCLINUX pastes. */
export const TERMINAL_REQUESTS = [0x5412, 0x541c] as const
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
export const FAMILIES = [1, 2, 10, 16] as const
export const X32_BIT = 0x40000000
