/**
 * Runs pgbench and reads every transaction from its log, so that transactions before the measured window are excluded
 * and percentiles cover all requests, as with the load generator.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { Histogram } from '../load/histogram.ts'
import { readCpuSeconds } from '../setup/proc.ts'
import type { PgbenchScript } from './pgbench-scripts.ts'

export interface PgbenchJob {
  /** Folder for temporary files. */
  readonly work: string
  readonly script: PgbenchScript
  readonly databaseUrl: string
  readonly databasePid: number
  readonly clients: number
  /** Length of the measured window, after a second of warm-up. */
  readonly seconds: number
}

export interface PgbenchResult {
  readonly transactions: number
  readonly seconds: number
  readonly latencies: Histogram
  /** Within the window; null where the kernel does not report it. */
  readonly cpuSeconds: number | null
  readonly databaseCpuSeconds: number | null
  /** All transactions, warm-up included. */
  readonly committed: number
}

/** pgbench reports its progress once a second: the first report is the end of the warm-up. */
export const pgbenchWarmupSeconds = 1
/** Added to the time limit for connecting and a busy machine; beyond that pgbench hangs. */
const graceSeconds = 30

/** Finds pgbench beside the server's programs, else on the path; null where it is missing. */
export function findPgbench(postgres: string): string | null {
  const beside = join(dirname(postgres), 'pgbench')
  return existsSync(beside) ? beside : Bun.which('pgbench')
}

/** Runs a script of pgbench. Throws an Error with what it printed when anything fails. */
export async function runPgbench(program: string, job: PgbenchJob): Promise<PgbenchResult> {
  const folder = mkdtempSync(join(job.work, 'pgbench-'))
  try {
    return await runIn(folder, program, job)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runIn(folder: string, program: string, job: PgbenchJob): Promise<PgbenchResult> {
  const script = join(folder, 'script.sql')
  writeFileSync(script, job.script.text)
  const { hostname, port, username, password, pathname } = new URL(job.databaseUrl)
  const threads = Math.min(job.clients, availableParallelism())
  const limitSeconds = Math.ceil(pgbenchWarmupSeconds + job.seconds) + graceSeconds
  const options = {
    protocol: 'prepared',
    client: job.clients,
    jobs: threads,
    time: limitSeconds,
    progress: 1,
    file: script,
    'log-prefix': join(folder, 'log'),
    host: hostname,
    port,
    username,
  }
  const child = Bun.spawn(
    [
      program,
      '--no-vacuum',
      '--log',
      ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
      ...Object.entries(job.script.variables).map(([name, value]) => `--define=${name}=${value}`),
      pathname.slice(1),
    ],
    {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', PGPASSWORD: password },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
      timeout: (limitSeconds + graceSeconds) * 1000,
    },
  )
  const read = (): Reading => ({
    atMs: Date.now(),
    own: readCpuSeconds(child.pid),
    database: readCpuSeconds(job.databasePid),
  })
  const readEnd = async (): Promise<Reading> => {
    await Bun.sleep(job.seconds * 1000)
    const end = read()
    // The signal of pgbench's own timer, whose time limit would include connecting.
    child.kill('SIGALRM')
    return end
  }
  let begin: Reading | null = null
  let end: Promise<Reading> | null = null
  let output = ''
  const decoder = new TextDecoder()
  for await (const chunk of child.stderr) {
    output += decoder.decode(chunk, { stream: true })
    if (begin !== null || !output.includes('progress: ')) continue
    begin = read()
    end = readEnd()
  }
  // pgbench exits with 0 even when clients were aborted.
  if ((await child.exited) !== 0 || begin === null || end === null || output.includes('error:'))
    throw new Error(`pgbench failed: ${output}`)
  return resultOf(folder, begin, await end)
}

interface Reading {
  readonly atMs: number
  readonly own: number | null
  readonly database: number | null
}

function resultOf(folder: string, begin: Reading, end: Reading): PgbenchResult {
  const logs = readdirSync(folder).filter((name) => name.startsWith('log.'))
  const { latencies, committed } = readLogs(
    logs.map((name) => readFileSync(join(folder, name), 'latin1')),
    begin.atMs,
    end.atMs,
  )
  return {
    transactions: latencies.total,
    seconds: (end.atMs - begin.atMs) / 1000,
    latencies,
    cpuSeconds: difference(begin.own, end.own),
    databaseCpuSeconds: difference(begin.database, end.database),
    committed,
  }
}

const difference = (begin: number | null, end: number | null): number | null =>
  begin === null || end === null ? null : end - begin

export interface PgbenchLog {
  /** Of the transactions that ended within the window. */
  readonly latencies: Histogram
  /** All. */
  readonly committed: number
}

/**
 * Reads logs of one run: a line for every transaction, with its client, number, time in µs, script, and when it ended
 * as seconds and microseconds since 1970.
 */
export function readLogs(logs: readonly string[], beginMs: number, endMs: number): PgbenchLog {
  const latencies = new Histogram()
  let committed = 0
  for (const log of logs)
    for (const line of log.split('\n')) {
      if (line === '') continue
      const [, , us, , seconds, microseconds] = line.split(' ').map(Number)
      const endedAtMs = Number(seconds) * 1000 + Number(microseconds) / 1000
      if (Number.isNaN(endedAtMs) || us === undefined || Number.isNaN(us))
        throw new Error(`pgbench logged a failed transaction: ${line}`)
      committed++
      if (endedAtMs > beginMs && endedAtMs <= endMs) latencies.add(us / 1000)
    }
  return { latencies, committed }
}
