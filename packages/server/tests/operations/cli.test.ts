/** The command line: processes, files, exit codes and output. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { environment, openCommandLine } from '../harness/processes/command-line.ts'
import { followText } from '../harness/processes/follow-text.ts'

const launcher = join(import.meta.dir, '../../bin/plinth.mjs')
/** Runs on Node, as npm starts it. */
const commandLine = openCommandLine(['node', launcher], 'SIGTERM')
const { spawn, run } = commandLine

/** A server that is ready, and its output. */
async function serve(command: 'dev' | 'start', env?: Record<string, string>) {
  const child = spawn([command, '--port', '0', '--host', '127.0.0.1'], env)
  const out = followText(child.stdout)
  const error = followText(child.stderr)
  await out.until('Plinth is ready at ')
  await out.until('\n')
  const url = /^Plinth is ready at (\S+)$/m.exec(out.text())?.[1] ?? ''
  return { child, url, out, error }
}

const writeConfig = (text: string): void => writeFileSync(join(commandLine.folder, 'plinth.config.ts'), text)
const oneTable = (access: string): string =>
  `import { defineConfig } from 'plinth'
   export default defineConfig({ databases: { shared: { tables: { notes: { access: ${access} } } } } })`

test('an unknown command exits with 2 and prints an error', async () => {
  const { out, error, code } = await run(['strat'])
  expect({ out, code }).toEqual({ out: '', code: 2 })
  expect(error).toBe('"strat" is not a command. Did you mean "start"?\nSee `plinth help`.\n')
})

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dir, '../../package.json'), 'utf8'))
  expect(await run(['--version'])).toEqual({ out: `${version}\n`, error: '', code: 0 })
})

describe.each(['dev', 'start'] as const)('%s', (command) => {
  test('without a configuration fails with a remedy', async () => {
    const { out, error, code } = await run([command])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(error).toBe(
      'There is no configuration at plinth.config.ts. `plinth init` writes one; --config names another.\n',
    )
    expect(readdirSync(commandLine.folder)).toEqual([])
  })

  test('prints all configuration issues and exits with 1', async () => {
    writeConfig(`export default { databases: { shared: {}, 'a-b': { tables: {} } }, files: {} }`)
    const { out, error, code } = await run([command])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(error.trimEnd().split('\n')).toEqual([
      'databases.shared.tables: is missing',
      expect.stringContaining('files: is not known here.'),
      'databases["a-b"]: must be a letter, then letters, digits and "_"',
    ])
    expect(readdirSync(commandLine.folder)).toEqual(['plinth.config.ts'])
  })

  test('fails if the port is in use', async () => {
    writeConfig(oneTable('{}'))
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { error, code } = await run([command, '--host', '127.0.0.1', '--port', String(other.port)])
    const { port } = other
    await other.stop(true)
    expect(code).toBe(1)
    expect(error).toBe(
      `Port ${port} on 127.0.0.1 is in use. Stop the other process, or choose another port with --port.\n`,
    )
  })

  test('fails if another process serves the data folder, and names it', async () => {
    writeConfig(oneTable('{}'))
    await serve(command)
    const { error, code } = await run([command, '--host', '127.0.0.1', '--port', '0'])
    expect(code).toBe(1)
    const folder = join(realpathSync(commandLine.folder), 'data')
    const pid = readFileSync(join(folder, 'lock.sqlite.pid'), 'utf8').trim()
    expect(error).toBe(
      `Another process (pid ${pid}) is serving the data folder ${folder}. Stop it, or name another folder with --data.\n`,
    )
  })

  test('fails if the data folder is a file', async () => {
    writeConfig(oneTable('{}'))
    const path = join(commandLine.folder, 'taken')
    writeFileSync(path, 'x')
    const { error, code } = await run([command, '--data', path, '--port', '0'])
    expect({ code, error }).toEqual({ code: 1, error: `--data: ${path} is a file; name a folder\n` })
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('exits with 0 on %s', async (signal) => {
    writeConfig(oneTable('{ read: true }'))
    const { child, url } = await serve(command)
    expect((await fetch(`${url}/api/db/shared/tables/notes`)).status).toBe(200)
    child.kill(signal)
    expect(await child.exited).toBe(0)
    expect(child.signalCode).toBeNull()
  })
})

test('a server whose launcher is killed shuts down gracefully', async () => {
  writeConfig(oneTable('{ read: true, insert: true }'))
  const { child, url, out } = await serve('start')
  const notes = `${url}/api/db/shared/tables/notes`
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"id":"kept"}' }
  expect((await fetch(notes, init)).status).toBe(201)
  child.kill('SIGKILL')
  await child.exited
  // The output ends when the server, which inherited it, has exited.
  await out.ended
  const again = await serve('start')
  expect((await fetch(`${again.url}/api/db/shared/tables/notes/kept`)).status).toBe(200)
})

test('start prints its URL and no secret', async () => {
  writeConfig(oneTable('{ read: true }'))
  const { child, url, out, error } = await serve('start')
  expect(out.text()).toBe(`Plinth is ready at ${url}\n`)
  const keys = ['secret', 'service-key'].map((name) =>
    readFileSync(join(commandLine.folder, 'data', name), 'utf8').trim(),
  )
  await fetch(`${url}/api/db/shared/tables/notes`, { headers: { 'X-Platform-Service-Key': keys[1] as string } })
  child.kill('SIGTERM')
  await Promise.all([child.exited, out.ended, error.ended])
  for (const key of keys) expect(out.text() + error.text()).not.toContain(key)
})

test('a secret and a service key of the environment are used, and none are generated', async () => {
  writeConfig(oneTable('{}'))
  const env = { PLINTH_SECRET: 's'.repeat(32), PLINTH_SERVICE_KEY: 'a-key-of-the-environment' }
  const { url } = await serve('start', env)
  const headers = { 'X-Platform-Service-Key': env.PLINTH_SERVICE_KEY }
  expect((await fetch(`${url}/api/db/shared/tables/notes`, { headers })).status).toBe(200)
  expect(
    existsSync(join(commandLine.folder, 'data/secret')) || existsSync(join(commandLine.folder, 'data/service-key')),
  ).toBe(false)
})

test('dev reloads a changed configuration, and keeps the old one if the new one is invalid', async () => {
  writeConfig(oneTable('{ read: true }'))
  const { child, url, out, error } = await serve('dev')
  const list = async () => (await fetch(`${url}/api/db/shared/tables/notes`)).status
  expect(await list()).toBe(200)
  writeConfig(oneTable('{ read: false }'))
  await out.until('config.reloaded file=plinth.config.ts')
  expect(await list()).toBe(401)
  writeConfig(oneTable('{ raed: true }'))
  await error.until('databases.shared.tables.notes.access.raed: is not known here. Did you mean "read"?')
  expect(await list()).toBe(401)
  writeConfig(oneTable('{ read: true }'))
  await out.until('config.reloaded file=plinth.config.ts')
  expect(await list()).toBe(200)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

describe('init', () => {
  test('writes a configuration and a README whose commands work', async () => {
    expect((await run(['init'])).out).toBe(
      'Wrote plinth.config.ts\nWrote functions/index.ts\nWrote .gitignore\nWrote README.md\n\nNext: plinth dev\n',
    )
    const { url, out } = await serve('dev')
    await out.until('First things to try:')
    const blocks =
      readFileSync(join(commandLine.folder, 'README.md'), 'utf8').match(/(?<=^```sh\n)curl [\s\S]*?(?=^```)/gm) ?? []
    expect(blocks).toHaveLength(4)
    const answers: string[] = []
    for (const block of blocks) {
      const script = `plinth() { node '${launcher}' "$@"; }\n${block.replaceAll('http://127.0.0.1:4100', url)}`
      const { stdout } = Bun.spawnSync(['bash', '-c', script], { cwd: commandLine.folder, env: environment })
      answers.push(stdout.toString())
    }
    const [written, published, greeting, all] = answers.map((answer) => JSON.parse(answer))
    expect(written).toMatchObject({ title: 'Hello', authorId: 'alice' })
    expect(published.items).toEqual([written])
    expect(greeting).toEqual({ message: 'Hello, Ada!' })
    expect(all.items).toEqual([written])
    const tries = out.text().match(/^ {2}curl .*$/gm) ?? []
    expect(tries).toHaveLength(3)
    for (const line of tries) {
      const { stdout } = Bun.spawnSync(['bash', '-c', `${line} -sfo /dev/null -w '%{http_code}'`])
      expect(stdout.toString()).toMatch(/^20[01]$/)
    }
  })

  test('keeps existing files', async () => {
    writeFileSync(join(commandLine.folder, 'README.md'), 'mine')
    expect((await run(['init', '.'])).out).toContain('Kept README.md.')
    writeConfig('mine')
    rmSync(join(commandLine.folder, '.gitignore'))
    const { error, code } = await run(['init'])
    expect({ error, code }).toEqual({ error: 'plinth.config.ts already exists; it was not changed.\n', code: 1 })
    expect(readdirSync(commandLine.folder).sort()).toEqual(['README.md', 'functions', 'plinth.config.ts'])
    expect(readFileSync(join(commandLine.folder, 'README.md'), 'utf8')).toBe('mine')
  })

  test('adds missing scripts to a package.json, in its indentation', async () => {
    const path = join(commandLine.folder, 'package.json')
    const init = async (manifest: string) => {
      rmSync(join(commandLine.folder, 'plinth.config.ts'), { force: true })
      writeFileSync(path, manifest)
      return { out: (await run(['init'])).out, manifest: readFileSync(path, 'utf8') }
    }
    const bare = await init('{\n\t"name": "app"\n}\n')
    expect(bare.out).toEndWith('Added to package.json: the scripts dev and start\n\nNext: npm run dev\n')
    expect(bare.manifest).toBe(
      '{\n\t"name": "app",\n\t"scripts": {\n\t\t"dev": "plinth dev",\n\t\t"start": "plinth start"\n\t}\n}\n',
    )
    const own = '{"scripts":{"dev":"vite","start":"node ."}}'
    expect(await init(own)).toEqual({ out: expect.stringContaining('Next: plinth dev'), manifest: own })
    const half = await init('{"scripts":{"start":"node ."}}')
    expect(half.out).toContain('Added to package.json: the script dev\n')
    expect(JSON.parse(half.manifest)).toEqual({ scripts: { start: 'node .', dev: 'plinth dev' } })
    for (const damaged of ['{', '[]', 'null'])
      expect(await init(damaged)).toEqual({ out: expect.stringContaining('Next: plinth dev'), manifest: damaged })
  })

  test('creates the folder', async () => {
    expect((await run(['init', 'a/b'])).out).toContain('Next: cd a/b && plinth dev')
    expect(readdirSync(join(commandLine.folder, 'a/b')).sort()).toEqual([
      '.gitignore',
      'README.md',
      'functions',
      'plinth.config.ts',
    ])
  })
})

describe('token', () => {
  test('is accepted by the server of the same data folder, with its claims', async () => {
    writeConfig(
      oneTable(`{ read: (auth) => auth?.role === 'editor' && auth.custom.team === 'a' && auth.email === 'a@x.org' }`),
    )
    const { url } = await serve('dev')
    const list = async (...args: string[]) => {
      const { out } = await run(['token', 'alice', ...args])
      const headers = { Authorization: `Bearer ${out.trim()}` }
      return (await fetch(`${url}/api/db/shared/tables/notes`, { headers })).status
    }
    const claims = ['--email', 'a@x.org', '--role', 'editor', '--claims', '{"team":"a"}']
    expect(await list(...claims, '--expires', '1h')).toBe(200)
    expect(await list(...claims, '--role', 'user')).toBe(403)
  })

  test('is not created in a data folder without a secret', async () => {
    mkdirSync(join(commandLine.folder, 'data'))
    const { out, error, code } = await run(['token', 'alice'])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(error).toStartWith('There is no secret at ')
    expect(readdirSync(join(commandLine.folder, 'data'))).toEqual([])
  })

  test('with too large claims is refused', async () => {
    const claims = JSON.stringify({ text: 'x'.repeat(10_000) })
    const { error, code } = await run(['token', 'alice', '--claims', claims], { PLINTH_SECRET: 's'.repeat(32) })
    expect(code).toBe(2)
    expect(error).toStartWith('--claims: ')
  })
})
