import { pi } from '../../src/harness/pi.ts'
import { openStage } from '../../fixtures/agents/stage.ts'
import { keepsTheContract } from '../contract/suite.ts'
import { behavesInTrouble, knowsTheEndOfALimit } from './trouble.ts'

const script = (...lines: string[]): string => ['SCRIPT:', ...lines].join('\n')
const bash = (command: string): string => `CALL bash ${JSON.stringify({ command })}`

keepsTheContract({
  harness: pi,
  open: (callTool) => openStage(pi, { callTool }),
  say: (text) => script(`SAY ${text}`),
  callTool: (name, args) => script(`CALL ${name} ${JSON.stringify(args)}`),
  run: (command) => script(bash(command)),
  big: (bytes) => script(`BIG ${String(bytes)}`),
  fail: () => script('STATUS 400 99'),
})

behavesInTrouble({ harness: pi, bash })
knowsTheEndOfALimit(pi, { variable: 'ANTHROPIC_API_KEY', value: 'sk-ant-api03-stand-in' })
