import { parse, stringify, YAMLParseError } from 'yaml'

/** What is loaded on demand is this module, and not the package: bundled, a CommonJS package that is imported at run time has no names but `default`. */

/** The value of a text; undefined: it is no YAML. */
export function readYaml(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    // yaml's words for an alias without an anchor, or for too many of them
    if (error instanceof YAMLParseError || error instanceof ReferenceError) return undefined
    throw error
  }
}

export const toYaml = (value: unknown): string => stringify(value)
