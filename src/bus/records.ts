import { AppError } from '../core/errors.ts'
import type { BusParams } from '../protocol/bus.ts'
import { BODY_BYTES, type Principal } from '../protocol/common.ts'
import type { TrailRow } from '../protocol/rows.ts'
import { actorOf, type BrokerContext } from './context.ts'
import type { Hourly } from './hourly.ts'
import { firstPage } from './pages.ts'
import type { Permits } from './permits.ts'

export interface RecordRules {
  /** What the run did itself and what is about it; with trail.read, and for the founder, all. Oldest first, after a record. */
  trail(principal: Principal, params: BusParams<'trail'>): TrailRow[]
  record(principal: Principal, params: BusParams<'event.record'>): Promise<{ readonly seq: number }>
}

const OWN_KIND = /^x\.[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/
const CONTROL = /\p{Cc}/u

export function createRecordRules({ store }: Pick<BrokerContext, 'store'>, permits: Permits, hourly: Hourly): RecordRules {
  const { trail } = store
  const assertRecordable = ({ kind, subject, body }: BusParams<'event.record'>): void => {
    if (!kind.startsWith('x.')) throw new AppError('reserved-kind', `kinds of your own begin with x., not ${JSON.stringify(kind)}`)
    if (!OWN_KIND.test(kind)) throw new AppError('invalid-request', `kind: x. is followed by lower-case letters, digits, dots and dashes`)
    if (subject !== undefined && CONTROL.test(subject)) throw new AppError('invalid-request', 'subject: it holds no control characters')
    if (Buffer.byteLength(JSON.stringify(body)) > BODY_BYTES) throw new AppError('invalid-request', `body: at most ${String(BODY_BYTES)} bytes`)
  }
  return {
    trail(principal, params) {
      const own = principal.kind === 'session' && !permits.has(principal, 'trail.read')
      return firstPage(trail.list({ ...params, of: own ? principal.run : undefined }))
    },
    async record(principal, params) {
      assertRecordable(params)
      if (principal.kind === 'session' && !hourly.take(principal.run))
        throw new AppError('too-many-records', 'this run has recorded as many events as an hour allows')
      const { kind, subject = null, body } = params
      const { seq } = await store.write(() => trail.append({ kind, subject, actor: actorOf(principal), body }))
      return { seq }
    },
  }
}
