/** Called by name right before a step that changes something. */
export type Failpoint<Name extends string = string> = (name: Name) => void

/**
 * The process kills itself at the failpoint that MOSAIC_FAILPOINT names (`name` or `name#2` for the second time it is
 * passed); without that variable a failpoint does nothing. For tests of what a crash leaves.
 */
export function createFailpoint(env: NodeJS.ProcessEnv): Failpoint {
  const wanted = env.MOSAIC_FAILPOINT
  if (wanted === undefined || wanted === '') return () => undefined
  const [target, count = '1'] = wanted.split('#')
  let left = Number(count)
  return (name) => {
    if (name !== target || --left !== 0) return
    process.kill(process.pid, 'SIGKILL')
    // the signal is delivered before kill(2) returns to a process with one thread; Node has more, so nothing may run on until it is
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
  }
}
