#!/usr/bin/env node
import { existsSync } from 'node:fs'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const program = new URL('../dist/cli.mjs', import.meta.url)
const refuse = (line) => {
  process.stderr.write(`${line}\n`)
  process.exit(12)
}

if (major < 20 || (major === 20 && minor < 19)) refuse(`error: mosaic needs Node 20.19 or newer, and this is ${process.versions.node}`)
if (!existsSync(program)) refuse('error: mosaic is not built: run npm run build')
const { main } = await import(program.href)
await main()
