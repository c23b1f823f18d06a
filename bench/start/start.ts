/**
 * The run of starts (`--start`): from the start of the process to its first response with status 200, and the memory
 * that it has then, on an empty folder and on folders with many tenants, beside the runtime alone.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runBundle } from '../../scripts/build/bundle.ts'
import { checkMark, decimal, markdownTable, measuredWith, megabytes } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import { median, type Plan } from '../setup/measure.ts'
import { readMemoryBytes } from '../setup/proc.ts'
import { startListener, startServer } from '../setup/processes.ts'
import { addTenants, markTenants, seedFolder } from './tenants.ts'

/** Of the package, beside its sources, so that it finds the libraries; ignored by Git. */
const packageFolder = fileURLToPath(new URL('../../packages/server', import.meta.url))
const bundleFolder = join(packageFolder, 'dist')
/** What `plinth start` runs once it is installed. */
const program = join(bundleFolder, 'main.js')

const plain = 'bench/start/plain/plinth.config.ts'
const hooked = 'bench/start/hooked/plinth.config.ts'
const firstResponseMsMax = 250
const residentBytesMax = 70 * 1024 * 1024

interface Started {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

interface Subject {
  readonly title: string
  readonly hasBudget?: boolean
  readonly start: (round: number) => Promise<Started>
  readonly path: string
}

interface Figures {
  readonly firstMs: number[]
  readonly bytes: number[]
}

async function subjectsIn(work: string, tenants: number): Promise<Subject[]> {
  const path = '/api/health'
  const on = (title: string, folder: string, config: string): Subject => ({
    title,
    path,
    start: () => startServer(folder, null, config, { program }),
  })
  const folders = { none: join(work, 'none'), many: join(work, 'many'), marked: join(work, 'marked') }
  await seedFolder(folders.none, hooked)
  await seedFolder(folders.many, plain)
  await addTenants(folders.many, tenants)
  await seedFolder(folders.marked, hooked)
  await addTenants(folders.marked, tenants)
  await markTenants(folders.marked, tenants)
  const count = tenants.toLocaleString('en-US')
  return [
    { title: 'the runtime alone', path: '/', start: () => startListener(['bench/start/bare.ts']) },
    {
      title: 'an empty folder',
      path,
      hasBudget: true,
      start: (round) => startServer(join(work, `empty-${round}`), null, plain, { program }),
    },
    {
      title: 'an empty folder, from sources',
      path,
      start: (round) => startServer(join(work, `sources-${round}`), null, plain),
    },
    on('one tenant', await seeded(join(work, 'one')), plain),
    on(`${count} tenants`, folders.many, plain),
    on('one tenant, with a function for changes', folders.none, hooked),
    on(`${count} tenants, written before a crash, with a function for changes`, folders.marked, hooked),
  ]
}

async function seeded(folder: string): Promise<string> {
  await seedFolder(folder, plain)
  return folder
}

async function measureOnce({ start, path }: Subject, round: number, { firstMs, bytes }: Figures): Promise<void> {
  const beganMs = performance.now()
  const { pid, port, stop } = await start(round)
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    await response.arrayBuffer()
    firstMs.push(performance.now() - beganMs)
    if (response.status !== 200) throw new Error(`The first response has status ${response.status}`)
    bytes.push(readMemoryBytes(pid, 'VmRSS') ?? Number.NaN)
  } finally {
    await stop()
  }
}

function lineOf({ title, hasBudget = false }: Subject, { firstMs, bytes }: Figures): string[] {
  const [ms, resident] = [median(firstMs), median(bytes)]
  const mark = (isMet: boolean): string => (hasBudget ? ` ${checkMark(isMet)}` : '')
  return [
    title,
    `${decimal(ms, 0)}${mark(ms <= firstResponseMsMax)}`,
    decimal(Math.min(...firstMs), 0),
    `${megabytes(resident)}${mark(resident <= residentBytesMax)}`,
  ]
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runStarts(plan: Plan, quick: boolean): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  const modules = ['src/main.ts', 'src/config/define.ts', 'src/config/sections/functions/define-functions.ts']
  try {
    runBundle({ folder: packageFolder, modules, libraries: ['zod'], out: bundleFolder })
    const subjects = await subjectsIn(work, quick ? 1000 : 100_000)
    const figures = subjects.map((): Figures => ({ firstMs: [], bytes: [] }))
    for (let round = 0; round < plan.rounds; round++)
      for (const [at, subject] of subjects.entries()) await measureOnce(subject, round, figures[at] as Figures)
    const head = ['start on', 'first response p50 ms', 'shortest ms', 'memory MB']
    const table = markdownTable(
      head,
      subjects.map((subject, at) => lineOf(subject, figures[at] as Figures)),
    )
    console.log(`\n${table}`)
    const environment = readEnvironment(work)
    return [
      measuredWith(environment, `SQLite ${environment.sqlite}`, plan, `${plan.rounds} starts of each, in alternation`),
      `Budget: ${firstResponseMsMax} ms and ${megabytes(residentBytesMax)} MB.`,
      table,
    ].join('\n\n')
  } finally {
    rmSync(work, { recursive: true, force: true })
    rmSync(bundleFolder, { recursive: true, force: true })
  }
}
