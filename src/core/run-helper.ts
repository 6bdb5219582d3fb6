/** What a throw-away sandbox sees of the host: a directory or file, pinned by a descriptor where there is one, at that same path inside. */
export interface HelperBind {
  readonly bind: { readonly fd: number; readonly path: string } | { readonly path: string }
  readonly readOnly: boolean
}

export interface HelperRequest {
  readonly binds: readonly HelperBind[]
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Standard input; one that is promised is waited for while the command runs. */
  readonly input?: Buffer | string | Promise<string>
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Bytes of standard output that are kept; a program that writes more is ended. */
  readonly stdoutLimit?: number
}

export interface HelperResult {
  /** null: it was ended by a signal, or by its deadline. */
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly timedOut: boolean
  readonly stdout: Buffer
  readonly stderr: string
}

/** Runs one command in a sandbox of its own, without network and secrets, and ends everything in it when it is over. Never rejects for what the command did. */
export type RunHelper = (request: HelperRequest) => Promise<HelperResult>
