import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import type { ConfigProblem } from '../../src/config/problem.ts'
import type { Config } from '../../src/config/types.ts'
import { AppError } from '../../src/core/errors.ts'

export const SYSTEM = `version: 1
founder: "ada"
dataRoot: ROOT/d
model: "claude-haiku-4-5"
families:
  opus: ["claude-opus-*"]
  sonnet: ["claude-sonnet-*"]
`

export const ACME = `version: 1
projects:
  stack:
    root: ROOT/stack
    branch: "main"
roles:
  pm:
    grants: ["role.launch", "task.create", "task.assign", "task.close", "task.read", "trail.read"]
    vars:
      harness: "script"
      model: "claude-opus-5-5"
  coder:
    grants: ["git.push.working", "review.request"]
    vars:
      harness: "script"
      model: "claude-sonnet-5-5"
  reviewer:
    grants: ["review.verdict"]
    vars:
      harness: "script"
      model: "claude-sonnet-5-5"
  cto:
    grants: ["trail.read"]
    vars:
      harness: "script"
launch:
  by: "pm"
  instances: ["coder", "reviewer", "cto"]
  max:
    opus: 1
    sonnet: 1
`

export interface World {
  readonly root: string
  readonly home: string
  readonly configDir: string
  readonly system: string
  readonly acme: string
  /** Writes text with ROOT filled in; the path is relative to the root, or absolute. */
  write(path: string, text: string): string
  read(path: string): string
  load(more?: { readonly env?: NodeJS.ProcessEnv; readonly dataRoot?: string }): Promise<Config>
  /** The mistakes of a configuration that must be refused. */
  problems(more?: { readonly env?: NodeJS.ProcessEnv; readonly dataRoot?: string }): Promise<readonly ConfigProblem[]>
}

export async function refusalOf(work: Promise<unknown>): Promise<AppError> {
  try {
    await work
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('it was to be refused')
}

/** A valid configuration in a temporary root that goes with the test. */
export function createWorld(): World {
  const root = mkdtempSync('/tmp/mc-')
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const home = join(root, 'h')
  const configDir = join(root, 'c')
  const system = join(configDir, 'system.yaml')
  const acme = join(configDir, 'businesses', 'acme.yaml')
  const world: World = {
    root,
    home,
    configDir,
    system,
    acme,
    write(path, text) {
      const full = path.startsWith('/') ? path : join(root, path)
      mkdirSync(dirname(full), { recursive: true })
      writeFileSync(full, text.replaceAll('ROOT', root))
      return full
    },
    read: (path) => readFileSync(path, 'utf8'),
    load: ({ env = {}, dataRoot } = {}) => loadConfig({ configDir, home, env, dataRoot }),
    async problems(more) {
      const error = await refusalOf(world.load(more))
      if (error.code !== 'config-invalid') throw error
      return (error.data as { readonly errors: readonly ConfigProblem[] }).errors
    },
  }
  mkdirSync(home)
  world.write(system, SYSTEM)
  world.write(acme, ACME)
  return world
}

/** The text with one part of it replaced; fails when the part is not there once. */
export function swap(text: string, part: string, by: string): string {
  if (text.split(part).length !== 2) throw new Error(`${part} is not there exactly once`)
  return text.replace(part, () => by)
}
