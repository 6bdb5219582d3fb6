import { AppError } from '../../core/errors.ts'
import type { CliContext, CommandSpec, Input } from '../context.ts'
import type { Beat } from '../demo/story.ts'

const WIDTH = 48

interface Told {
  readonly scene: string
  readonly beats: Beat[]
}

function toLine({ out }: CliContext, { text, outcome }: Beat): string {
  return `  ${text.padEnd(WIDTH)} ${out.style('green', '→')} ${outcome}\n`
}

/** Plays the story on a stage that is gone afterwards, a line as it happens; with --json all at its end. */
async function demo(context: CliContext, input: Input): Promise<number> {
  if (process.getuid?.() === 0)
    throw new AppError('runs-as-root', 'the bus host never runs as root, and the demo starts one', { hint: 'runuser -u NAME -- mosaic demo' })
  const [{ openStage }, { SCENES }] = await Promise.all([import('../demo/stage.ts'), import('../demo/story.ts')])
  const { out, env, version, signal } = context
  const { json } = context.options
  const told: Told[] = []
  const keep = input.flag('keep')
  await using stage = await openStage({ env, version, keep, signal })
  for (const { title, play } of SCENES) {
    const scene: Told = { scene: title, beats: [] }
    told.push(scene)
    if (!json) out.write(`${out.style('bold', title)}\n`)
    for await (const beat of play(stage)) {
      signal.throwIfAborted()
      scene.beats.push(beat)
      if (!json) out.write(toLine(context, beat))
    }
  }
  const left = keep ? stage.root : null
  if (json) out.emit({ data: { scenes: told, left }, human: () => '' })
  else out.write(left === null ? 'Everything of it is gone again. Your turn: mosaic init\n' : `kept: ${left}\n`)
  return 0
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'demo',
    summary: 'the whole story in a throw-away data root, without credentials',
    options: [{ flags: '--keep', summary: 'leave the data root, configuration and project where they are' }],
    settles: true,
    run: demo,
  },
]
