import { type Clock, toTimestamp } from '../core/clock.ts'

/** Whether the provider takes the host's credential. */
export interface CredentialHealth {
  refused(): void
  accepted(): void
  /** When it was refused, since it was last accepted; null when it was not. */
  refusedAt(): string | null
}

export function createCredentialHealth({ now }: Pick<Clock, 'now'>): CredentialHealth {
  let since: string | null = null
  return {
    refused: () => void (since ??= toTimestamp(now())),
    accepted: () => void (since = null),
    refusedAt: () => since,
  }
}
