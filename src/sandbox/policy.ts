/** The sandbox policy as data: what is inside, where, how big. plan.ts puts it in order. */

/** Fixed places inside. */
export const INSIDE = {
  /** The execute-only copy of Node that runs the runner. */
  runnerNode: '/opt/mosaic/runner-node',
  /** The ordinary Node for harness programs, where the machine's own is not below /usr. */
  nodePrefix: '/opt/mosaic/node',
  /** The host's sockets, read-only. */
  sockets: '/run/mosaic',
  /** The one place for sockets that the runner itself makes: 0700, small. */
  agent: '/run/agent',
} as const

export const HOSTNAME = 'mosaic'
export const USER = 'agent'

const KIB = 1024
const MIB = 1024 * KIB

/** A tmpfs is 0755 and half of the machine's memory unless told otherwise. */
export const PRIVATE_TMPFS = [
  { dest: '/dev/shm', mode: '1777', sizeBytes: 256 * MIB },
  { dest: '/tmp', mode: '1777', sizeBytes: 512 * MIB },
  { dest: '/var/tmp', mode: '1777', sizeBytes: 64 * MIB },
  { dest: '/run', mode: '0755', sizeBytes: 4 * MIB },
] as const

/** Without the cover an agent wrote pid 1's memory and made it release the env root's lock, seccomp or not. */
export const INIT_COVER = { dest: '/proc/1', mode: '0555', sizeBytes: 4 * KIB } as const
export const SOCKET_TMPFS = { dest: INSIDE.sockets, mode: '0755', sizeBytes: 64 * KIB } as const
export const AGENT_TMPFS = { dest: INSIDE.agent, mode: '0700', sizeBytes: 64 * KIB } as const

/** Links on a merged-/usr system, directories on an older one; whichever it is here is made the same inside. */
export const ROOT_DIRS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'] as const

/** Bound read-only where they exist, links resolved. */
export const ETC_FILES = [
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
  '/etc/ssl/cert.pem',
  '/etc/ca-certificates',
  '/etc/ca-certificates.conf',
  '/etc/pki/tls/certs',
  '/etc/pki/ca-trust/extracted',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/alternatives',
  '/etc/localtime',
] as const

/** Directories of the founder's PATH that are visible inside are those below here. */
export const SYSTEM_PROGRAMS = '/usr'
export const BASE_PATH = ['/usr/local/bin', '/usr/bin', '/bin'] as const

/** Nothing below may ever be a source: sockets of the session bus, agents, keyrings. */
export const NEVER = ['/run/user'] as const

/** What `--dev` makes: bubblewrap's setup_newroot. Each is a mount of its own. */
export const DEV_MOUNTS = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'pts'].map((name) => `/dev/${name}`)

export const syntheticEtc = (id: { readonly uid: number; readonly gid: number }, home: string, shell: string): Readonly<Record<string, string>> => ({
  passwd: [
    'root:x:0:0:root:/root:/usr/sbin/nologin',
    `${USER}:x:${String(id.uid)}:${String(id.gid)}:${USER}:${home}:${shell}`,
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  ].join('\n'),
  group: `root:x:0:\n${USER}:x:${String(id.gid)}:\nnogroup:x:65534:\n`,
  hosts: `127.0.0.1 localhost ${HOSTNAME}\n::1 localhost ip6-localhost\n`,
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  hostname: `${HOSTNAME}\n`,
  'machine-id': '6d6f7361696300000000000000000000\n',
})
