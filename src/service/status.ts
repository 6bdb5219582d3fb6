import { readIfThere } from './install.ts'
import type { UnitPlaces } from './places.ts'
import { isBooted, type Systemctl } from './systemctl.ts'
import type { Scope } from './unit.ts'

export interface ServiceRow {
  readonly unit: string
  readonly scope: Scope
  readonly path: string
  readonly installed: boolean
  /** null when it is not installed, or the configuration does not tell. */
  readonly current: boolean | null
  readonly enabled: string | null
  readonly active: string | null
  readonly pid: number | null
  readonly status: string | null
  readonly since: string | null
  readonly restarts: number | null
  readonly credentials: string
}

const given = (text: string | undefined): string | null => (text === undefined || text === '' ? null : text)

/** Of a unit as it is now. `texts`: what installations would write, of which one is current; null: none could. */
export function statusOfUnit(
  systemctl: Systemctl,
  { scope, places, texts }: { scope: Scope; places: UnitPlaces; texts: readonly string[] | null },
): ServiceRow {
  const found = readIfThere(places.unit)
  const live = isBooted() ? systemctl.show(places.name) : {}
  const pid = Number(live.MainPID ?? 0)
  return {
    unit: places.name,
    scope,
    path: places.unit,
    installed: found !== null,
    current: found === null || texts === null ? null : texts.includes(found),
    enabled: given(live.UnitFileState),
    active: given(live.ActiveState),
    pid: pid > 0 ? pid : null,
    status: given(live.StatusText),
    since: given(live.ActiveEnterTimestamp),
    restarts: live.NRestarts === undefined ? null : Number(live.NRestarts),
    credentials: places.credentials,
  }
}
