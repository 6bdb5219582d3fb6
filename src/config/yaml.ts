import { parse, stringify } from 'yaml'

/**
 * What is loaded on demand where YAML is rarely needed. Not the package itself: it is CommonJS, and of that a bundle's `import()`
 * gives no names.
 */
export const parseYaml = (text: string): unknown => parse(text)

export const toYaml = (value: unknown): string => stringify(value)
