/**
 * `npm test`: the fast lane, unit tests and every black-box test on the embedded engine that is not slow.
 * `npm run test:all`: every test, with PostgreSQL, Redis and S3 servers started here for the run, and a real browser.
 * Arguments are passed to the test runner: `npm test -- records-list`, `npm test -- -t cursor`. Files run in parallel
 * on all cores. The last line is `Tests: N passed, N failed`.
 *
 * PLINTH_TEST_RERUN=1 runs the files with failures once more, alone, if they are few: what passes then is reported as
 * flaky instead of failed. `.ci/run` sets it; a flaky test is a defect all the same.
 *
 * PLINTH_TEST_ALL_ENGINES=1 makes a missing server or browser a failure of `test:all`; otherwise a warning, printed
 * before and after the run, names what was skipped.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildDashboard } from './build/dashboard.ts'
import { openPostgres } from './servers/postgres.ts'
import type { PrivateServer } from './servers/private-server.ts'
import { provideChromium, providePgvector, providePostgres, provideRedis, provideS3 } from './servers/programs.ts'
import { openRedis } from './servers/redis.ts'
import { openS3 } from './servers/s3.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const folders = ['packages', 'bench', 'examples', 'scripts']

/** Generous: a test on a busy machine may be slow and still be right. */
const timeoutMs = 180_000

/** Files of the slow lane by name; `npm run test:all` runs them. See also `startsPrograms`. */
const slowFiles = [
  // Crashes, failing engines, and whole examples.
  '**/*{crash,example,outage,faults,simulation}.test.ts',
  // Random inputs by the hundred, compared with a model or a rule for all inputs.
  '**/{properties/*,malformed,*-random}.test.ts',
  // Compiler and bundler runs.
  '**/{types/*,size}.test.ts',
  // Archives of whole servers, and the launchers in a clone.
  '**/operations/{backups/*,launchers}.test.ts',
  // Engines with child processes that reach their deadlines, and graphs of thousands of vectors.
  '**/engines/{hosts/hosts,vectors/core,vectors/threads}.test.ts',
  // What a deadline or a full buffer ends takes until then.
  '**/{sql/limits,slow}.test.ts',
]

/** Files that start servers, commands, browsers or package managers as processes belong to the slow lane too. */
const startsPrograms = (file: string): boolean =>
  /from '[^']*\/harness\/(?:processes|packages|examples)\//.test(readFileSync(join(root, file), 'utf8'))

/**
 * Files that run one after the other, after all others: they measure memory, occupy a processor with endless loops, or
 * suspend and kill nodes whose leases would expire for want of a processor.
 */
const serialFiles = ['**/*{crash,nodes,outage,faults,memory}.test.ts', '**/{cluster-example,rooms/lifetime}.test.ts']

/** A file system in memory, where a sync costs nothing, and its free space that the fast lane needs: it uses 100 MB. */
const memoryFolder = '/dev/shm'
const memoryBytesMin = 1024 ** 3

/**
 * The folder for data of the fast lane: in memory if there is room, which halves the time of a server's start. The
 * slow lane writes to the disk.
 */
function makeDataFolder(): string {
  const hasRoom = existsSync(memoryFolder) && freeBytes(memoryFolder) >= memoryBytesMin
  return mkdtempSync(join(hasRoom ? memoryFolder : tmpdir(), 'plinth-tests-'))
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

const matches = (file: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => new Bun.Glob(pattern).match(file))

let child: Bun.Subprocess | null = null
let interrupted: NodeJS.Signals | null = null

const findTestFiles = (): string[] =>
  folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file))))
    .filter((file) => !file.includes('node_modules'))
    .filter(
      (file) => file.endsWith('.test.ts') && /\b(describe|test)[\w.]*\(/.test(readFileSync(join(root, file), 'utf8')),
    )

interface Counts {
  passed: number
  failed: number
}

interface Result extends Counts {
  /** Failures by file. */
  readonly failures: ReadonlyMap<string, number>
}

/** More files with failures than this are no accident, and are not run again. */
const rerunFilesMax = 3

function readFailures(text: string): Map<string, number> {
  const failures = new Map<string, number>()
  for (const [, file = '', body = ''] of text.matchAll(
    /<testcase [^>]*?file="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  ))
    if (body.includes('<failure')) failures.set(file, (failures.get(file) ?? 0) + 1)
  return failures
}

/** Counts from a JUnit report. A run that wrote none has failed, and so has each of `files` that it lacks. */
function readResult(report: string, files: readonly string[]): Result {
  const text = existsSync(report) ? readFileSync(report, 'utf8') : ''
  const total = /<testsuites [^>]*>/.exec(text)?.[0]
  if (total === undefined) return { passed: 0, failed: 1, failures: new Map() }
  const count = (name: string): number => Number(new RegExp(` ${name}="(\\d+)"`).exec(total)?.[1] ?? 0)
  const lost = files.filter((file) => !text.includes(` file="${file}"`))
  for (const file of lost) console.error(`No result: ${file}`)
  const failed = count('failures')
  const failures = readFailures(text)
  for (const file of lost) failures.set(file, 1)
  return { passed: count('tests') - failed - count('skipped'), failed: failed + lost.length, failures }
}

interface Run {
  /** Arguments that choose the files. */
  readonly args: readonly string[]
  /** Files that must have a result. */
  readonly files: readonly string[]
  readonly isParallel: boolean
}

const runOf = (files: readonly string[], isParallel: boolean): Run => ({
  args: files.map((file) => `./${file}`),
  files,
  isParallel,
})

/** The runs of a lane, or the one that arguments of the command line ask for. */
function planRuns(lane: Lane, args: readonly string[]): Run[] {
  if (args.length > 0) return [{ args, files: [], isParallel: true }]
  const files = findTestFiles()
  if (lane === 'fast') {
    const quick = files.filter((file) => !matches(file, slowFiles) && !startsPrograms(file))
    // Files that need PostgreSQL, Redis or S3 define no tests here, so a file without a result is no failure.
    return [{ ...runOf(quick, true), files: [] }]
  }
  const [serial, parallel] = [true, false].map((is) => files.filter((file) => matches(file, serialFiles) === is))
  return [runOf(parallel ?? [], true), runOf(serial ?? [], false)]
}

async function runTests({ args, files, isParallel }: Run, environment: Environment): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-tests-'))
  const report = join(folder, 'report.xml')
  const options = ['--only-failures', `--timeout=${timeoutMs}`, ...(isParallel ? ['--parallel', '--no-isolate'] : [])]
  const reporting = ['--reporter=junit', `--reporter-outfile=${report}`]
  try {
    child = Bun.spawn([process.execPath, 'test', ...options, ...reporting, ...args], {
      cwd: root,
      env: { ...process.env, ...environment },
      stdio: ['inherit', 'inherit', 'inherit'],
    })
    const code = await child.exited
    child = null
    const result = readResult(report, files)
    return code === 0 ? result : { ...result, failed: Math.max(1, result.failed) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function runAll(runs: readonly Run[], environment: Environment): Promise<Counts> {
  const sum = { passed: 0, failed: 0 }
  const failures = new Map<string, number>()
  for (const run of runs) {
    if (interrupted) break
    const result = await runTests(run, environment)
    sum.passed += result.passed
    sum.failed += result.failed
    for (const [file, count] of result.failures) failures.set(file, count)
  }
  const files = [...failures.keys()].sort()
  for (const file of files) console.error(`To run it again: npm run test:all -- ./${file}`)
  const isWorthIt = process.env.PLINTH_TEST_RERUN === '1' && files.length > 0 && files.length <= rerunFilesMax
  if (!isWorthIt || interrupted) return sum
  const again = await runTests(runOf(files, false), environment)
  for (const file of files) if (!again.failures.has(file)) console.error(`FLAKY: ${file} failed, and passed alone`)
  const firstFailed = files.reduce((count, file) => count + (failures.get(file) ?? 0), 0)
  const stillFailed = Math.min(again.failed, firstFailed)
  return { passed: sum.passed + firstFailed - stillFailed, failed: sum.failed - firstFailed + stillFailed }
}

type Lane = 'fast' | 'all'

type Environment = Readonly<Record<string, string>>

interface Servers {
  /** Variables by which the tests find the servers, the browser, and the folder for their data. */
  readonly environment: Environment
  /** What is not available, each with the reason. */
  readonly missing: readonly string[]
  close(): Promise<void>
}

async function openServers(): Promise<Servers> {
  const opened: PrivateServer[] = []
  const environment: Record<string, string> = {}
  const missing: string[] = []
  const notHere = 'not installed, and it cannot be installed here'
  const add = async (what: string, variable: string, open: () => Promise<PrivateServer> | null): Promise<void> => {
    try {
      const server = await open()
      if (server === null) return void missing.push(`${what}: ${notHere}`)
      opened.push(server)
      environment[variable] = server.url
    } catch (error) {
      missing.push(`${what}: ${error instanceof Error ? error.message : error}`)
    }
  }
  await add('PostgreSQL', 'PLINTH_TEST_DATABASE_URL', () => {
    const programs = providePostgres()
    return programs && openPostgres(programs)
  })
  await add('PostgreSQL with pgvector', 'PLINTH_TEST_PGVECTOR_URL', () => {
    const programs = providePgvector()
    return programs && openPostgres(programs)
  })
  await add('Redis', 'PLINTH_TEST_REDIS_URL', () => {
    const path = provideRedis()
    return path === null ? null : openRedis(path)
  })
  await add('S3', 'PLINTH_TEST_S3_URL', () => {
    const path = provideS3()
    return path === null ? null : openS3(path)
  })
  const chromium = provideChromium()
  if (chromium === null) missing.push(`a browser, Chromium: ${notHere}`)
  else environment.PLINTH_TEST_CHROMIUM = chromium
  return { environment, missing, close: async () => void (await Promise.all(opened.map((server) => server.remove()))) }
}

function warnMissing(missing: readonly string[]): void {
  if (missing.length === 0) return
  const lines = [
    'NOT EVERYTHING IS TESTED. Skipped, because it is not available:',
    ...missing.map((what) => `  ${what}`),
  ]
  const rule = '!'.repeat(72)
  console.error(['', rule, ...lines, rule, ''].join('\n'))
}

function openFastLane(): Servers {
  const folder = makeDataFolder()
  const close = async (): Promise<void> => rmSync(folder, { recursive: true, force: true })
  return { environment: { TMPDIR: folder }, missing: [], close }
}

async function main(): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      interrupted = signal
      child?.kill(signal)
    })
  await buildDashboard()
  const [first, ...rest] = process.argv.slice(2)
  const lane: Lane = first === '--all' ? 'all' : 'fast'
  const args = lane === 'all' || first === undefined ? rest : [first, ...rest]
  const servers = lane === 'all' ? await openServers() : openFastLane()
  try {
    warnMissing(servers.missing)
    const counts = await runAll(planRuns(lane, args), servers.environment)
    if (process.env.PLINTH_TEST_ALL_ENGINES === '1') counts.failed += servers.missing.length
    warnMissing(servers.missing)
    if (interrupted) return 130
    console.log(`\nTests: ${counts.passed} passed, ${counts.failed} failed`)
    return counts.failed > 0 || counts.passed === 0 ? 1 : 0
  } finally {
    await servers.close()
  }
}

process.exit(await main())
