/** Runs inside, in the runner's Node, as one file from standard input: it tries, it judges nothing. */
export const PROBE_REPORT = 'report.json'
export const PROBE_DESCRIPTORS = 'descriptors'
export const PROBE_ADDON = '/opt/mosaic/probe.node'

/** The shell's list of its own descriptors: 0 to 2, and the one that the listing itself has open. */
export const probeCommand = (node: string): readonly string[] => [
  '/bin/sh',
  '-c',
  `echo /proc/$$/fd/* > ${PROBE_DESCRIPTORS}; exec ${node} --input-type=module -`,
]

export const probeScript = (port: number): string => String.raw`
import fs from 'node:fs'
import net from 'node:net'
const attempt = (act) => {
  try {
    return String(act() ?? 'done')
  } catch (error) {
    return error.code ?? error.message
  }
}
const { O_WRONLY } = fs.constants
const opening = (path) => attempt(() => fs.closeSync(fs.openSync(path, O_WRONLY)))
const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
const listed = (path) => {
  try {
    return fs.readdirSync(path)
  } catch {
    return []
  }
}
const directories = pids.flatMap((pid) => listed('/proc/' + pid + '/fd').map((fd) => '/proc/' + pid + '/fd/' + fd + '/..').filter((path) => fs.existsSync(path)))
const addon = { exports: {} }
process.dlopen(addon, ${JSON.stringify(PROBE_ADDON)})
const ioctl = addon.exports.load('libc.so.6').func('int ioctl(int fd, unsigned long request, ...)')
const TIOCSTI = 0x5412
const typed = ioctl(0, TIOCSTI, 'const char *', 'x') === 0 ? 0 : addon.exports.errno()
const loopback = await new Promise((resolve) => {
  const socket = net.connect(${String(port)}, '127.0.0.1')
  socket.on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code))
})
const report = {
  status: fs.readFileSync('/proc/self/status', 'utf8'),
  pids,
  self: String(process.pid),
  initEnvironment: attempt(() => fs.readFileSync('/proc/1/environ', 'utf8')),
  initMemory: opening('/proc/1/mem'),
  directories,
  typed,
  loopback,
  corePattern: opening('/proc/sys/kernel/core_pattern'),
  root: attempt(() => fs.writeFileSync('/probe', '')),
  etc: attempt(() => fs.writeFileSync('/etc/probe', '')),
}
fs.writeFileSync(${JSON.stringify(PROBE_REPORT)}, JSON.stringify(report))
`
