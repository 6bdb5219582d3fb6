import type { ErrorCode } from '../core/codes.ts'
import type { SessionFile } from '../protocol/session.ts'

/** What system.yaml says of one harness. */
export interface HarnessSettings {
  readonly bin: string | null
}

/** What the gate holds the program to, beside finding it. */
export interface HarnessPins extends HarnessSettings {
  /** A range of versions, as npm writes them; null: any. */
  readonly version?: string | null
  /** What the program needs beside itself, read-only, at its own path. */
  readonly paths?: readonly string[]
}
export type Environment = Readonly<Record<string, string | undefined>>

/** The trimmed first line that `BIN --version` prints, on standard output or else on standard error; null when it fails, says nothing or takes too long. */
export type VersionOf = (bin: string, hostEnv: Environment) => Promise<string | null>

/** A harness as it was found on the host. */
export interface LocatedHarness {
  /** The program's real path on the host; null for one that ships with Mosaic. */
  readonly bin: string | null
  /** The path at which a session finds it; null for one that ships with Mosaic. */
  readonly inside: string | null
  /** The trimmed first line of `--version`; null when it has none to give. */
  readonly version: string | null
  /** What the sandbox must hold, read-only: a path of the host and the path that it gets inside. */
  readonly programs: readonly { readonly source: string; readonly dest: string }[]
  /** Directories inside the sandbox that go on PATH. */
  readonly pathDirs: readonly string[]
}

/** A file that the host writes at each launch, before the session starts: `path` is relative to the run's home, or a name in `state/`. */
export interface ConfigFile {
  readonly in: 'home' | 'state'
  readonly path: string
  readonly text: string
}

/**
 * What a sandbox holds in place of the host's credential: of the same kind, worthless anywhere but on this run's model socket, where
 * the gateway swaps it. `variable` is the one in which the host holds the real one.
 */
export interface Placeholder {
  readonly variable: 'CLAUDE_CODE_OAUTH_TOKEN' | 'ANTHROPIC_API_KEY' | 'ANTHROPIC_AUTH_TOKEN'
  readonly value: string
}

/** What the host knows of a session beside session.json. */
export interface HarnessContext {
  readonly located: LocatedHarness
  /** null: the host holds no credential for this harness. */
  readonly placeholder: Placeholder | null
}

/** One agent program: its host side, and where its driver is. One file a harness. */
export interface Harness {
  readonly name: string
  /** How the driver speaks to the program, in a few words. */
  readonly spoken: string
  /** Does a launch need a credential of the provider's, held by the host? */
  readonly needsSessionCredential: boolean
  /** Is the model gateway's socket bound into the sandbox? */
  readonly needsModelSocket: boolean
  /** Names in `state/` that carry a conversation and survive a launch; all else there is removed. */
  readonly stateEntries: readonly string[]
  /** Finds the program; null when it is not installed. */
  readonly locate: (settings: HarnessSettings, hostEnv: Environment, versionOf: VersionOf) => Promise<LocatedHarness | null>
  /** Why it was not found, in one sentence for the launch log. */
  readonly whyMissing: (settings: HarnessSettings, hostEnv: Environment) => string
  /** Why the host's environment holds no session credential; null when it holds one or none is needed. */
  readonly whyNoCredential: (hostEnv: Environment) => string | null
  /** Variables of the session beside those that every sandbox has. */
  readonly environment: (session: SessionFile, context: HarnessContext) => Readonly<Record<string, string>>
  readonly configFiles: (session: SessionFile) => readonly ConfigFile[]
  /** Programs of Mosaic's own (files of dist/) that the session's bundle holds beside the runner. */
  readonly bundled: readonly string[]
  /** Loads the driver, inside the runner. */
  readonly driver: () => Promise<StartDriver>
}

/** A tool's answer: what the host said, or a refusal with its code. */
export type ToolAnswer = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: ErrorCode; readonly text: string }
export type CallTool = (name: string, args: Readonly<Record<string, unknown>>) => Promise<ToolAnswer>

export interface DriverOptions {
  readonly session: SessionFile
  /** The session's variables and the role's credentials: all that a child may see. */
  readonly env: Readonly<Record<string, string>>
  readonly callTool: CallTool
  /** Where a tool server inside the sandbox reaches the runner; null when it could not listen. */
  readonly toolSocket: string | null
  /** Writes one line to runner.log. */
  readonly log: (line: string) => void
  /** A turn in which the program says nothing for so long is ended; 15 minutes by default. */
  readonly silenceMs?: number
}

export type DriverEvent =
  | { readonly event: 'ready' }
  | { readonly event: 'session-id'; readonly id: string }
  | { readonly event: 'turn-started' }
  | { readonly event: 'text'; readonly text: string }
  | { readonly event: 'tool-call'; readonly name: string; readonly input: unknown }
  | { readonly event: 'tool-result'; readonly name: string; readonly ok: boolean }
  | { readonly event: 'retry'; readonly reason: string }
  | { readonly event: 'usage'; readonly inputTokens: number; readonly outputTokens: number }
  | TurnEnded
  | { readonly event: 'exited'; readonly code: number | null; readonly signal: string | null; readonly expected: boolean }

/**
 * `text`: what the program calls its answer; without it all texts of the turn are. `retryAtMs` (epoch): the provider limits us until
 * then; the turn is neither done nor failed.
 */
export interface TurnEnded {
  readonly event: 'turn-ended'
  readonly ok: boolean
  readonly reason: string | null
  readonly text?: string
  readonly retryAtMs?: number
}

export interface Driver {
  /** Every event, once, in order; ends after `exited`. */
  readonly events: AsyncIterable<DriverEvent>
  /** Begins a turn. Only when the harness is idle. */
  send(text: string): void
  /** Ends the turn early; it ends as failed, with reason `interrupted`. Nothing happens when idle. */
  interrupt(): void
  /** Closes the harness's input, ends it after `graceMs` at the latest, and resolves when it is gone. Idempotent. */
  close(graceMs: number): Promise<void>
}

/** Starts the harness. Throws `harness-missing` when the program is not there; any other error is a harness that failed. */
export type StartDriver = (options: DriverOptions) => Promise<Driver>
