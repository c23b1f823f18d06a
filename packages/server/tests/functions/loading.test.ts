/** Loading of functions: problems are named at the start, and a reload keeps what runs and the last good code. */
import { afterEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FunctionProject, openFunctionProject } from '../harness/functions.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { followText } from '../harness/processes/follow-text.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

function openProject(code: string): FunctionProject {
  const project = openFunctionProject(code)
  opened.push({ close: project.remove })
  return project
}

async function serve(project: FunctionProject, mode: 'development' | 'release', environment = {}): Promise<TestServer> {
  const config = { databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } } } } } } }
  const server = await startServer({ config, mode, settings: { projectFolder: project.folder, environment } })
  opened.push(server)
  return server
}

const broken = `
export const a = before('shared.psots', ['insert'], () => {})
export const b = schedule('61 * * * *', {}, () => {})
export const c = rpc({ limit: 'often' }, () => 1)
export const d = rpc({ timout: '1s' }, () => 1)
export const e = http.get('no-slash', {}, () => new Response())
export const f = http.get('/x/:id', {}, () => new Response())
export const g = http.get('/x/:name', {}, () => new Response())
export const h = queue('q', {}, () => 1)
export const i = queue('q', {}, () => 1)
export const j = onChange('shared.posts', { on: ['insrt'] }, () => 1)
secret('CRM_KEY')
export const B = rpc({}, () => 1)
export const k = rpc({}, () => 1)
export const l = http.post('/k', {}, () => new Response())
export const m = schedule('0 3 * * *', { tz: 'Mars/Olympus' }, () => {})
export const n = before('storage.avatrs', ['insert'], () => {})
`
const problems = [
  'functions/index.ts:4: a: there is no table "shared.psots". Did you mean "posts"?',
  'functions/index.ts:5: b: cron: "61 * * * *" is not a schedule',
  'functions/index.ts:6: c: limit: must be a limit such as "3/m per user" or "100/s"',
  'functions/index.ts:7: d: timout: is not known here. Did you mean "timeout"?',
  'functions/index.ts:8: e: path: must begin with "/"',
  'functions/index.ts:10: g: /x/:name is served by "f"',
  'functions/index.ts:12: i: the queue "q" is that of "h"',
  'functions/index.ts:13: j: on[0]: must be one of insert, update, delete',
  'functions/index.ts:14: secret("CRM_KEY"): has no value. Set the environment variable CRM_KEY, or run `plinth secrets set CRM_KEY`.',
  'functions/index.ts:5: b: differs from "B" only in upper and lower case',
  'functions/index.ts:16: k: POST /api/fn/k is served by "l"',
  'functions/index.ts:18: m: tz: "Mars/Olympus" is not a time zone; write one such as "Europe/Berlin"',
  'functions/index.ts:19: n: there is no bucket "avatrs".',
]

test('[FN-14] every problem of the code is named with its location, and ends the start in release mode', async () => {
  const error = await serve(openProject(broken), 'release').catch((thrown) => thrown)
  for (const problem of problems) expect(error.message).toContain(problem)
})

test('[FN-14] in development the server starts with code that does not load, and says why', async () => {
  const server = await serve(openProject('export const a = rpc({ caller: "all" }, () => 1)'), 'development')
  expect(server.logged()).toContain('a: caller: must be')
  expect((await server.service.get('/api/functions')).body).toEqual({ items: [] })
})

test('[FN-14] a secret has the value of its environment variable', async () => {
  const project = openProject("secret('CRM_KEY')\nexport const key = rpc({}, (_, ctx) => ctx.secrets)")
  const server = await serve(project, 'release', { CRM_KEY: 'abc', OTHER: 'x' })
  expect((await server.service.post('/api/fn/key', {})).body).toEqual({ CRM_KEY: 'abc' })
})

test('[FN-15] a reload drops nothing that runs, and keeps the last good code', async () => {
  const project = openProject(`export const version = rpc({}, async (wait, ctx) => {
  if (wait) await new Promise((resolve) => setTimeout(resolve, 500))
  return 1
})`)
  const server = await serve(project, 'development')
  const version = async (wait = false) => (await server.service.post('/api/fn/version', wait)).body
  const running = version(true)
  project.write('export const version = rpc({}, () => 2)')
  await server.reloadFunctions()
  expect(await version()).toBe(2)
  expect(await running).toBe(1)
  project.write('export const version = rpc({}, () => {')
  expect(server.reloadFunctions()).rejects.toThrow(/functions\/index\.ts does not load:\nindex\.ts:\d+: /)
  expect(await version()).toBe(2)
})

const command = openCommandLine(['node', join(import.meta.dir, '../../bin/plinth.mjs')], 'SIGTERM')

test('[FN-15] plinth dev serves saved code, and shows the error of code that does not load', async () => {
  await command.run(['init', '.'])
  const child = command.spawn(['dev', '--port', '0'])
  const out = followText(child.stdout)
  const error = followText(child.stderr)
  await out.until('Plinth is ready at ')
  await out.until('\n')
  const url = /^Plinth is ready at (\S+)$/m.exec(out.text())?.[1] ?? ''
  const greet = async () => {
    const answer = await fetch(`${url}/api/fn/hello`, {
      method: 'POST',
      body: '{"name":"Ada"}',
      headers: { 'content-type': 'application/json' },
    })
    return answer.json()
  }
  expect(await greet()).toEqual({ message: 'Hello, Ada!' })
  const path = join(command.folder, 'functions/index.ts')
  const text = await Bun.file(path).text()
  writeFileSync(path, text.replace('Hello, ', 'Good day, '))
  while ((await greet()).message !== 'Good day, Ada!');
  writeFileSync(path, 'export const x = {')
  await error.until('The functions have changed; the previous code remains active:')
  await error.until('index.ts:1: ')
  expect(await greet()).toEqual({ message: 'Good day, Ada!' })
})
