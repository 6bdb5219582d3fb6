/** Does something again and again, never twice at a time; a failure is told and the next turn comes all the same. Keeps no process alive. Returns the end of it. */
export function repeatEvery(intervalMs: number, work: () => Promise<void>, onError: (error: unknown) => void): () => void {
  let working = false
  const timer = setInterval(() => {
    if (working) return
    working = true
    work()
      .catch(onError)
      .finally(() => (working = false))
  }, intervalMs)
  timer.unref()
  return () => clearInterval(timer)
}
