/**
 * The launchers of scripts/ on plain Node, in a temporary clone with a fake Bun and npm: what they find, repair and
 * install, and that they pass on arguments, output, signals and exit codes. All other tests use the real ones.
 */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const repository = join(import.meta.dir, '../../../..')
/** The launchers and the files that they import, by path in the repository. */
const launchers = ['packages/server/bin/bun.mjs', 'scripts/prepare.mjs', 'scripts/run.mjs', 'scripts/start.mjs']
const root = mkdtempSync(join(tmpdir(), 'plinth-launchers-'))
let clone = ''

afterAll(() => rmSync(root, { recursive: true }))

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true })
  writeFileSync(join(clone, path), text)
  chmodSync(join(clone, path), mode)
}

/**
 * A program that accepts `--version`, and otherwise prints its name and its arguments. With the argument `terminate` it
 * sends SIGTERM to its launcher and waits for the signal that the launcher passes on.
 */
const fakeBun = (name: string, exitCode = 5): string => `#!/bin/sh
[ "$1" = --version ] && exit 0
[ "$1" = terminate ] && { trap 'exit 7' TERM; kill -TERM $PPID; while kill -0 $PPID; do sleep 0.01; done; }
echo "${name}: $*"
exit ${exitCode}
`
const placeholder = '#!/bin/sh\nexit 1\n'

const lock = (packages: object): string => JSON.stringify({ packages: { '': {}, ...packages } })

beforeEach(() => {
  clone = mkdtempSync(join(root, 'clone-'))
  for (const path of launchers) {
    mkdirSync(dirname(join(clone, path)), { recursive: true })
    copyFileSync(join(repository, path), join(clone, path))
  }
  write('package.json', '{"type":"module"}')
  write('package-lock.json', lock({ 'node_modules/bun': { version: '1' } }))
  write('node_modules/.package-lock.json', lock({ 'node_modules/bun': { version: '1' } }))
  write('node_modules/bun/package.json', '{"bin":{"bun":"bin/bun.exe"}}')
  write('node_modules/bun/install.js', 'process.exit(1)')
  write('node_modules/bun/bin/bun.exe', fakeBun('linked'), 0o755)
})

const npmRecord = 'npm-was-run.txt'
/** An npm that records its arguments and "installs" the lock file, except for the commands that are to fail. */
const fakeNpm = (failing: string): string => `
  import { appendFileSync, copyFileSync } from 'node:fs'
  const words = process.argv.slice(2).join(' ')
  appendFileSync('${npmRecord}', words + '\\n')
  if ('${failing}'.split(',').includes(words)) process.exit(1)
  copyFileSync('package-lock.json', 'node_modules/.package-lock.json')`

const run = (...words: string[]) => launch('run.mjs', ...words)
const launch = (script: string, ...words: string[]) => launchWith({}, script, ...words)

async function launchWith(settings: Record<string, string>, script: string, ...words: string[]) {
  const { npm_lifecycle_event, MIMALLOC_PURGE_HOLES_MIN_INTERVAL, ...env } = process.env
  const child = Bun.spawn(['node', `scripts/${script}`, ...words], {
    cwd: clone,
    env: { ...env, npm_execpath: join(clone, 'npm.js'), ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const npm = existsSync(join(clone, npmRecord)) ? readFileSync(join(clone, npmRecord), 'utf8').trim().split('\n') : []
  return { out: out.trim(), error: error.trim(), code: await child.exited, npm }
}

describe('the Bun binary', () => {
  test('that npm has linked runs with the given arguments, and its exit code is passed on', async () => {
    expect(await run('a.ts', '--b', 'c d')).toEqual({ out: 'linked: a.ts --b c d', error: '', code: 5, npm: [] })
  })

  test('runs with the settings of its allocator, unless the environment has others', async () => {
    const printing = '#!/bin/sh\n[ "$1" = --version ] || echo "$MIMALLOC_PURGE_HOLES_MIN_INTERVAL"\n'
    write('node_modules/bun/bin/bun.exe', printing, 0o755)
    expect((await run('a.ts')).out).toBe('1000')
    expect((await launchWith({ MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '500' }, 'run.mjs', 'a.ts')).out).toBe('500')
  })

  test('is repaired by its install script if npm has not run it', async () => {
    write('node_modules/bun/bin/bun.exe', placeholder, 0o755)
    write('node_modules/bun/repaired', fakeBun('repaired'), 0o755)
    write('node_modules/bun/install.js', `require('fs').renameSync('repaired', 'bin/bun.exe')`)
    expect((await run('a.ts')).out).toBe('repaired: a.ts')
  })

  test('is taken from the package of the platform if the install script fails', async () => {
    write('node_modules/bun/bin/bun.exe', placeholder, 0o755)
    write('node_modules/@oven/bun-other/bin/bun', placeholder, 0o755)
    write('node_modules/@oven/bun-this/bin/bun', fakeBun('platform'), 0o755)
    expect((await run('a.ts')).out).toBe('platform: a.ts')
  })

  test('that cannot be found is an error with a remedy', async () => {
    write('node_modules/bun/bin/bun.exe', placeholder, 0o755)
    const { error, code } = await run('a.ts')
    expect({ error, code }).toEqual({
      error: 'Bun does not run here. Remove node_modules and run `npm install` again.',
      code: 1,
    })
  })

  test('receives the signals of its launcher', async () => {
    expect((await run('terminate')).code).toBe(7)
  })
})

describe('the packages', () => {
  const other = { 'node_modules/bun': { version: '2' } }
  const optional = { 'node_modules/@oven/bun-other': { version: '1', optional: true } }

  test('that are up to date are not installed again, whatever optional ones are missing', async () => {
    write('package-lock.json', lock({ 'node_modules/bun': { version: '1' }, ...optional }))
    expect((await run('a.ts')).npm).toEqual([])
  })

  test.each([
    ['outdated packages', () => write('package-lock.json', lock(other))],
    ['missing packages', () => write('node_modules/.package-lock.json', lock({}))],
    ['packages without a record of npm', () => rmSync(join(clone, 'node_modules/.package-lock.json'))],
  ])('%s are installed, once', async (_, spoil) => {
    spoil()
    write('npm.js', fakeNpm(''))
    const first = await run('a.ts')
    expect(first).toMatchObject({ code: 5, npm: ['ci'] })
    expect(first.out).toEndWith('linked: a.ts')
    expect((await run('a.ts')).npm).toEqual(['ci'])
  })

  test('are installed without the lock file if `npm ci` fails', async () => {
    write('package-lock.json', lock(other))
    write('npm.js', fakeNpm('ci'))
    expect(await run('a.ts')).toMatchObject({ code: 5, npm: ['ci', 'install'] })
  })

  test('that npm cannot install are an error', async () => {
    write('package-lock.json', lock(other))
    write('npm.js', fakeNpm('ci,install'))
    expect(await run('a.ts')).toMatchObject({ error: 'npm could not install the packages; see above.', code: 1 })
  })
})

describe('npm start', () => {
  const output = async (): Promise<string[]> => (await launch('start.mjs')).out.split('\n')

  test('prints that it starts before it installs packages or loads anything', async () => {
    write('package-lock.json', lock({ 'node_modules/bun': { version: '2' } }))
    write('npm.js', `console.log('npm installs')${fakeNpm('')}`)
    write('node_modules/bun/bin/bun.exe', fakeBun('linked', 0), 0o755)
    expect(await output()).toEqual([
      'Starting Plinth with the atlas example…',
      'Installing packages…',
      'npm installs',
      expect.stringMatching(/^linked: .*scripts\/build\/dashboard\.ts$/),
      'Loading the server…',
      expect.stringMatching(/^linked: .*examples\/atlas\/start\.ts$/),
    ])
  })

  test('ends with an error if the dashboard cannot be built', async () => {
    expect(await launch('start.mjs')).toMatchObject({ error: 'The dashboard could not be built; see above.', code: 1 })
  })

  test('imports only built-in modules before its first output', () => {
    const imported = (path: string): string[] =>
      [...readFileSync(join(repository, path), 'utf8').matchAll(/^import .* from '([^']+)'/gm)].map(
        ([, from = '']) => from,
      )
    for (const path of launchers)
      expect(imported(path).filter((from) => !/^node:|\/(?:bun|prepare)\.mjs$/.test(from))).toEqual([])
  })
})
