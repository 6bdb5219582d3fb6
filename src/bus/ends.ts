import { type BrokerContext, FOUNDER } from './context.ts'
import type { Delivery } from './delivery.ts'
import type { Hourly } from './hourly.ts'
import type { BrokerSession, GivenMessage, RunEnd } from './ports.ts'
import type { Post } from './post.ts'

export interface RunEnded {
  /** Did the run hold its role? */
  readonly released: boolean
  /** To whom the host wrote of it. */
  readonly notified: readonly string[]
}

/** After so many ends of a run that had a message, it is given no more. */
const DELIVERIES = 3
const NAMED = 20

/** Ends that say nothing against the message that the run was working on. */
const BLAMELESS: readonly RunEnd['reason'][] = ['stopped', 'host-lost']

const howOf = ({ reason, exitCode, signal }: RunEnd): string => {
  if (signal !== null) return `${reason}, signal ${signal}`
  return exitCode === null ? reason : `${reason}, exit ${String(exitCode)}`
}

export function createEndRules(
  { store, roster }: BrokerContext,
  post: Pick<Post, 'hostNote'>,
  delivery: Delivery,
  hourlies: readonly Pick<Hourly, 'forget'>[],
): (session: BrokerSession, end: RunEnd) => RunEnded {
  const bury = (message: GivenMessage): void => {
    store.messages.setState(message.id, 'dead')
    if (message.from_instance === message.to) return
    post.hostNote(
      message.from_instance,
      `message ${message.id} is dead`,
      `Message ${message.id} to ${message.to} is dead: ${String(DELIVERIES)} runs ended while they had it.`,
    )
  }
  const giveBack = (run: string, end: RunEnd): void => {
    const blamed = BLAMELESS.includes(end.reason) ? 0 : 1
    for (const message of store.messages.givenTo(run)) {
      const deaths = message.deaths + blamed
      if (deaths >= DELIVERIES) bury(message)
      else store.messages.requeue(message.id, deaths)
    }
  }
  /** Who is told, with the REQUESTs of theirs that stay open. */
  const concerned = ({ instance, launchedBy, launchedByKind }: BrokerSession): Map<string, string[]> => {
    const told = new Map<string, string[]>([[launchedByKind === 'founder' ? FOUNDER : launchedBy, []]])
    for (const { id, from } of store.messages.owedBy(instance)) {
      const ids = told.get(from) ?? []
      // what is not named need not be kept: a run may owe thousands
      told.set(from, ids.length < NAMED ? [...ids, id] : ids)
    }
    told.delete(instance)
    return told
  }
  const tell = (session: BrokerSession, end: RunEnd): string[] => {
    const { run, instance, task } = session
    const subject = `session ${run} ended: ${end.reason}`
    const about = `Session ${run} (${instance}) ended: ${howOf(end)}.${task === null ? '' : ` Task: ${task}.`}`
    return [...concerned(session)].flatMap(([name, ids]) => {
      const owed = ids.length === 0 ? '' : ` Still owed to you: ${ids.join(' ')}.`
      return post.hostNote(name, subject, about + owed) === null ? [] : [name]
    })
  }
  return (session, end) => {
    delivery.endRun(session.run)
    const released = session.claimedAt !== null
    const actor = { kind: 'host', name: 'host', run: null } as const
    if (released) store.trail.append({ kind: 'role.released', subject: session.run, actor, body: { instance: session.instance } })
    giveBack(session.run, end)
    store.onCommit(() => {
      for (const hourly of hourlies) hourly.forget(session.run)
    })
    // instances of another business that this data root served may have the names of ours
    const notified = session.business === roster().business ? tell(session, end) : []
    return { released, notified }
  }
}
