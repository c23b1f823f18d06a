/**
 * `npm test`: every test of the repository, or those that the arguments name: `npm test -- records-list`, `npm test --
 * -t cursor`. Real PostgreSQL, Redis and S3 servers run beside the tests, started here and gone at the end, and pages
 * are tried in a real browser. The last line is `Tests: N passed, N failed`.
 *
 * PLINTH_TEST_ALL_ENGINES=1 makes it a failure when a server or the browser cannot be had; else what was left out is
 * said, twice.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openPostgres } from './servers/postgres.ts'
import type { PrivateServer } from './servers/private-server.ts'
import { provideChromium, providePgvector, providePostgres, provideRedis, provideS3 } from './servers/programs.ts'
import { openRedis } from './servers/redis.ts'
import { openS3 } from './servers/s3.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Each in a process of its own, so that one that dies takes no others along. */
const folders = ['src', 'client', 'tests', 'bench', 'examples', 'scripts']

/** On a busy machine a test may be slow and still be right. */
const timeoutMs = 180_000

/** What runs now, and is to end when we are told to. */
let child: Bun.Subprocess | null = null
let interrupted: NodeJS.Signals | null = null

const hasTests = (folder: string): boolean =>
  existsSync(join(root, folder)) &&
  readdirSync(join(root, folder), { recursive: true }).some((file) => /\.test\.ts$/.test(String(file)))

interface Counts {
  passed: number
  failed: number
}

/** Runs Bun's tests, and counts from its report. A run that wrote none has died, whatever its exit code says. */
async function runTests(args: readonly string[], report: string, environment: Environment): Promise<Counts> {
  const reporting = [`--timeout=${timeoutMs}`, '--reporter=junit', `--reporter-outfile=${report}`]
  child = Bun.spawn([process.execPath, 'test', ...reporting, ...args], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  const code = await child.exited
  child = null
  const total = existsSync(report) ? /<testsuites [^>]*>/.exec(readFileSync(report, 'utf8'))?.[0] : undefined
  const count = (name: string): number => Number(new RegExp(` ${name}="(\\d+)"`).exec(total ?? '')?.[1] ?? 0)
  const failed = Math.max(count('failures'), code === 0 && total !== undefined ? 0 : 1)
  return { passed: count('tests') - count('failures') - count('skipped'), failed }
}

async function runAll(filters: readonly string[], environment: Environment): Promise<Counts> {
  const temporary = mkdtempSync(join(tmpdir(), 'plinth-tests-'))
  const runs = filters.length > 0 ? [filters] : folders.filter(hasTests).map((folder) => [`./${folder}/`])
  const sum = { passed: 0, failed: 0 }
  try {
    for (const [at, args] of runs.entries()) {
      if (interrupted) break
      const { passed, failed } = await runTests(args, join(temporary, `${at}.xml`), environment)
      sum.passed += passed
      sum.failed += failed
    }
  } finally {
    rmSync(temporary, { recursive: true })
  }
  return sum
}

type Environment = Readonly<Record<string, string>>

interface Servers {
  /** Where the tests find them, and a browser. */
  readonly environment: Environment
  /** What could not be had, in words. */
  readonly missing: readonly string[]
  close(): Promise<void>
}

async function openServers(): Promise<Servers> {
  const opened: PrivateServer[] = []
  const environment: Record<string, string> = {}
  const missing: string[] = []
  const notHere = 'not on this machine, and it cannot be installed here'
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

function sayMissing(missing: readonly string[]): void {
  if (missing.length === 0) return
  const lines = ['NOT EVERYTHING IS TESTED. Left out is what needs', ...missing.map((what) => `  ${what}`)]
  const rule = '!'.repeat(72)
  console.error(['', rule, ...lines, rule, ''].join('\n'))
}

async function main(): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      interrupted = signal
      child?.kill(signal)
    })
  const servers = await openServers()
  try {
    sayMissing(servers.missing)
    const counts = await runAll(process.argv.slice(2), servers.environment)
    if (process.env.PLINTH_TEST_ALL_ENGINES === '1') counts.failed += servers.missing.length
    sayMissing(servers.missing)
    if (interrupted) return 130
    console.log(`\nTests: ${counts.passed} passed, ${counts.failed} failed`)
    return counts.failed > 0 || counts.passed === 0 ? 1 : 0
  } finally {
    await servers.close()
  }
}

process.exit(await main())
