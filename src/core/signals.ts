import { constants } from 'node:os'

/** Some have two names (SIGABRT, SIGIOT): the first is the one that people know, and of entries a map keeps the last. */
const NAMES: ReadonlyMap<number, NodeJS.Signals> = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name as NodeJS.Signals]),
)

/** signal(7); undefined: no signal has that number. */
export const signalName = (number: number): NodeJS.Signals | undefined => NAMES.get(number)
