/** `limits.tools` names tools in common words; each program has its own names for them. What is not in a table goes as it is. */
const CLAUDE: Readonly<Record<string, readonly string[]>> = {
  bash: ['Bash', 'TaskOutput', 'TaskStop'],
  read: ['Read'],
  write: ['Write'],
  edit: ['Edit', 'NotebookEdit'],
  task: ['Task'],
  web: ['WebFetch', 'WebSearch'],
}

export const toClaudeTools = (tools: readonly string[]): string[] => tools.flatMap((tool) => CLAUDE[tool] ?? [tool])
