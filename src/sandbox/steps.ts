/** A pinned directory or file and the path it gets inside, which is its path outside. The descriptor stays the caller's. */
export interface Bind {
  readonly fd: number
  readonly path: string
}

/** One operation of bubblewrap; they are applied in order. */
export type Step =
  /** `own`: listed by us for this very run, so it may lie where no other source may. */
  | { readonly kind: 'bind'; readonly source: string; readonly dest: string; readonly readOnly: boolean; readonly own: boolean }
  | { readonly kind: 'pinned'; readonly bind: Bind; readonly readOnly: boolean }
  | { readonly kind: 'data'; readonly dest: string; readonly text: string }
  | { readonly kind: 'tmpfs'; readonly dest: string; readonly mode: string; readonly sizeBytes: number }
  | { readonly kind: 'link'; readonly dest: string; readonly target: string }
  | { readonly kind: 'proc' | 'dev' | 'read-only'; readonly dest: string }

export const destOf = (step: Step): string => (step.kind === 'pinned' ? step.bind.path : step.dest)

export const tmpfs = (at: { readonly dest: string; readonly mode: string; readonly sizeBytes: number }): Step => ({ kind: 'tmpfs', ...at })
export const data = (dest: string, text: string): Step => ({ kind: 'data', dest, text })
export const readOnly = (dest: string): Step => ({ kind: 'read-only', dest })
export const pinned = (bind: Bind, isReadOnly: boolean): Step => ({ kind: 'pinned', bind: { fd: bind.fd, path: bind.path }, readOnly: isReadOnly })
/** A read-only source of the machine's: checked against what may never be inside. */
export const visible = (source: string, dest = source): Step => ({ kind: 'bind', source, dest, readOnly: true, own: false })
export const ownBind = (source: string, dest: string, isReadOnly: boolean): Step => ({ kind: 'bind', source, dest, readOnly: isReadOnly, own: true })

/**
 * bubblewrap 0.8 follows a link below a bound tree when it makes a mount point there, and writes outside (fixed in 0.12).
 * So no destination may lie below what an agent can write.
 */
export function assertNoNesting(steps: readonly Step[]): void {
  const writable = steps.filter((step) => 'readOnly' in step && !step.readOnly).map(destOf)
  for (const dest of steps.map(destOf)) {
    const tree = writable.find((path) => dest.startsWith(`${path}/`))
    if (tree !== undefined) throw new Error(`${dest} lies below ${tree}, which is writable inside`)
  }
}
