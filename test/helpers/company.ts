import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { RunningHost } from './world.ts'
import { demoBusiness, World } from './world.ts'

export interface Inside {
  readonly code: number
  /** Standard output and error, as they came. */
  readonly out: string
}

interface CompanyOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly limits?: Readonly<Record<string, string>>
  readonly coderEnv?: Readonly<Record<string, string>>
  readonly instances?: readonly string[]
}

interface Role {
  env?: Readonly<Record<string, string>>
  readonly vars: Record<string, unknown>
}

interface Roles extends Readonly<Record<string, Role>> {
  readonly coder: Role
}

/** A world with a project, two coders and a reviewer, whose sessions run what a test tells them. */
export class Company extends World {
  #host: RunningHost | undefined

  static async open({ env = {}, limits, coderEnv, instances = ['coder'] }: CompanyOptions = {}): Promise<Company> {
    const company = new Company({ project: true })
    const business = demoBusiness(company.root)
    const roles = business.roles as Roles
    for (const role of Object.values(roles)) role.vars.limits = { turnsPerHour: 10_000 }
    if (coderEnv !== undefined) roles.coder.env = coderEnv
    const seats = { coder: { role: 'coder' }, 'coder-2': { role: 'coder' }, reviewer: { role: 'reviewer' }, pm: { role: 'pm' } }
    company.business = { ...business, instances: seats, launch: { by: 'pm', instances: ['coder', 'coder-2', 'reviewer'], max: { opus: 1, sonnet: 3 } } }
    if (limits !== undefined) company.system.limits = limits
    company.configure()
    try {
      await company.begin(instances, env)
      return company
    } catch (error) {
      await company[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Starts a host, once the earlier one is gone, and these sessions; the exit status of the earlier one, null when it was killed. */
  async begin(instances: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number | null | undefined> {
    const earlier = await this.#host?.stop()
    this.#host = await this.start({ env })
    for (const instance of instances) await this.must(['launch', instance])
    return earlier
  }

  get project(): string {
    return join(this.root, 'stack')
  }

  bare(...args: string[]): string {
    return this.git(join(this.data, 'git', 'acme', 'stack.git'), ...args)
  }

  async task(id: string, assignee = 'coder'): Promise<void> {
    await this.must(['task', 'create', `Task ${id}`, '--id', id, '--project', 'stack', '--assignee', assignee])
  }

  /** Runs shell text in a session's sandbox, in its clone of the project. */
  async inside(instance: string, script: string): Promise<Inside> {
    const mark = randomBytes(6).toString('hex')
    const whole = `cd stack && export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid\n${script}\n`
    const text = await this.ask(instance, `RUN echo ${Buffer.from(whole).toString('base64')} | base64 -d | sh 2>&1; echo "${mark} $?"`)
    const [, out = '', code] = new RegExp(`^([\\s\\S]*?)\\n?${mark} (\\d+)$`).exec(text) ?? []
    return { out, code: Number(code) }
  }

  /** Commits a change of a file and pushes it. */
  async push(instance: string, task: string, { file = 'work.txt', text = 'work' } = {}): Promise<Inside & { readonly commit: string }> {
    const ran = await this.inside(
      instance,
      `mkdir -p "$(dirname ${file})"; echo '${text}' >> ${file} && git add ${file} && git commit -q -m '${text}' && git rev-parse HEAD && git push mosaic HEAD:${task}`,
    )
    return { ...ran, commit: ran.out.slice(0, 40) }
  }

  /** The JSON of a tool call. */
  async tool(instance: string, name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse(await this.ask(instance, `TOOL ${name} ${JSON.stringify(args)}`)) as Readonly<Record<string, unknown>>
  }
}
