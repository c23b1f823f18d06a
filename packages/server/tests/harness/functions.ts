/** Project folders with functions, for servers of tests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from './client.ts'

export interface FunctionProject {
  readonly folder: string
  /** Writes a module of the functions folder, with the imports of most modules before `code`. */
  write(code: string, name?: string): void
  remove(): void
}

const head = `import { functionsFor, HttpError, secret } from 'plinth/functions'
const { before, onChange, rpc, http, schedule, queue, webhook, auth } = functionsFor()
`

export function openFunctionProject(code: string): FunctionProject {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-functions-'))
  const write = (text: string, name = 'index.ts'): void => {
    mkdirSync(join(folder, 'functions'), { recursive: true })
    writeFileSync(join(folder, 'functions', name), head + text)
  }
  write(code)
  return { folder, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/**
 * Until a process runs functions, of a project with an `rpc` named `ready`: one that was killed is replaced in the
 * background, and a call that finds none in time is 503.
 */
export async function untilHostReady({ post }: Client): Promise<void> {
  while ((await post('/api/fn/ready', {})).status !== 200);
}
