import { ID_LENGTH, isId, RESERVED_IDS } from '../core/ids.ts'

/** A valid id made of any name: `My Stack.js` becomes `my-stack-js`. The fallback is for names without a usable character. */
export function toId(name: string, fallback: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, ID_LENGTH)
    .replace(/-+$/, '')
  return isId(plain) && !RESERVED_IDS.includes(plain) ? plain : fallback
}

/** The same, but none of the names that are taken. */
export function toFreeId(name: string, fallback: string, taken: readonly string[]): string {
  const id = toId(name, fallback)
  return taken.includes(id) ? fallback : id
}
