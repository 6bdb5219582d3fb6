import type { Finding } from './issues.ts'
import type { BusinessOutline } from './outline.ts'
import { type DataRoot, expandHome, followLinks, isAnchored, overlap } from './paths.ts'

const words = (what: string, path: string, other: string, otherPath: string): string => {
  const [one, two] = [followLinks(path), followLinks(otherPath)]
  return one === two ? `${what} ${path} is ${other}` : `${what} ${path} overlaps ${other} ${otherPath}`
}

/** Data root and config root must lie apart; the finding belongs to system.yaml. */
export function checkRoots(dataRoot: DataRoot, configDir: string): Finding[] {
  if (!overlap(followLinks(dataRoot.path), followLinks(configDir))) return []
  const from = dataRoot.from === 'system.yaml' ? '' : ` (from ${dataRoot.from})`
  return [{ path: ['dataRoot'], at: 'value', message: `${words('the data root', dataRoot.path, 'the config root', configDir)}${from}` }]
}

/** A project's root must lie apart from data root, config root and the business's other roots. */
export function checkProjects(business: BusinessOutline, places: { readonly dataRoot: string; readonly configDir: string; readonly home: string }): Finding[] {
  const taken = [
    { what: 'the data root', path: places.dataRoot },
    { what: 'the config root', path: places.configDir },
  ]
  return business.projects.flatMap(({ id, root }): Finding[] => {
    if (root === null || !isAnchored(root)) return []
    const path = expandHome(root, places.home)
    const real = followLinks(path)
    const met = taken.filter((other) => overlap(real, followLinks(other.path)))
    taken.push({ what: `the root of project ${id}`, path })
    return met.map((other) => ({ path: ['projects', id, 'root'], at: 'value', message: words('the root', path, other.what, other.path) }))
  })
}
