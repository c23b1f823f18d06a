#!/usr/bin/env node
/** The command `plinth`: runs src/main.ts under Bun with the arguments given, from Node.js or Bun. */
import { fileURLToPath } from 'node:url'
import { runBun } from './bun.mjs'

const main = new URL('../src/main.ts', import.meta.url)

if (process.versions.bun) await import(main.href)
else {
  try {
    process.exitCode = await runBun([fileURLToPath(main), ...process.argv.slice(2)])
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
