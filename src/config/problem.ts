/** One mistake in one file; line and column count from 1. */
export interface ConfigProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** The key's path, dotted (`launch.instances.1`); empty for the file as a whole. */
  readonly path: string
  readonly message: string
}

/** `FILE:LINE:COL: PATH: MESSAGE`, as compilers say it. */
export const formatProblem = ({ file, line, column, path, message }: ConfigProblem): string =>
  `${file}:${String(line)}:${String(column)}: ${path === '' ? '' : `${path}: `}${message}`
