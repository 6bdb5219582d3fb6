import { claudeCode } from '../../src/harness/claude-code.ts'
import { openStage } from '../../fixtures/agents/stage.ts'
import { keepsTheContract } from '../contract/suite.ts'
import { behavesInTrouble, knowsTheEndOfALimit } from './trouble.ts'

const script = (...lines: string[]): string => ['SCRIPT:', ...lines].join('\n')
const bash = (command: string): string => `CALL Bash ${JSON.stringify({ command })}`

keepsTheContract({
  harness: claudeCode,
  open: (callTool) => openStage(claudeCode, { callTool }),
  say: (text) => script(`SAY ${text}`),
  callTool: (name, args) => script(`CALL mcp__mosaic__${name} ${JSON.stringify(args)}`),
  run: (command) => script(bash(command)),
  big: (bytes) => script(`BIG ${String(bytes)}`),
  fail: () => script('STATUS 400 99'),
})

behavesInTrouble({ harness: claudeCode, bash })
// with an API key it is told nothing, and the driver guesses
knowsTheEndOfALimit(claudeCode, { variable: 'CLAUDE_CODE_OAUTH_TOKEN', value: 'sk-ant-oat01-stand-in' })
