import { claudeCode } from '../../src/harness/claude-code.ts'
import { openStage } from '../../fixtures/agents/stage.ts'
import { keepsTheContract } from '../contract/suite.ts'
import { behavesInTrouble } from './trouble.ts'

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
