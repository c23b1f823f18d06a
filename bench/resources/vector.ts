/** The vector run (`--vector`). Uses private processes and folders and removes them. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { providePgvector } from '../../scripts/servers/programs.ts'
import type { Cells } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { CompetitorJob, CompetitorResult } from './vector-competitor.ts'
import { type Shape, shapes } from './vector-data.ts'
import { type ComparedStore, type ShapeFigures, searchHead, searchLines, titleOf, toMarkdown } from './vector-report.ts'
import { type StoreName, storeNames } from './vector-stores.ts'

/** Graphs are built for more than ten thousand vectors. */
const amounts = { full: { count: 100_000, shapes }, quick: { count: 25_000, shapes: ['clusters'] as Shape[] } }

/** Runs, prints, and returns the figures as Markdown. */
export async function runVector(plan: Plan, quick: boolean): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const amount = amounts[quick ? 'quick' : 'full']
  const figures: ShapeFigures[] = []
  const missing = new Set<string>()
  for (const shape of amount.shapes) {
    const compared: ComparedStore[] = []
    for (const store of storeNames) {
      const job = { store, shape, count: amount.count, ...plan }
      try {
        compared.push({ store, result: await runCompetitor(job, join(work, `${shape}-${compared.length}`)) })
      } catch (error) {
        missing.add(`${store} could not be measured: ${error instanceof Error ? error.message : error}`)
      }
    }
    const each = { shape, count: amount.count, compared }
    figures.push(each)
    print(each)
  }
  for (const sentence of missing) console.log(`\n${sentence}`)
  return toMarkdown(readEnvironment(work), plan, figures, [...missing])
}

/** Measures one store in a process of its own, with nothing else running. */
async function runCompetitor(
  job: Omit<CompetitorJob, 'folder' | 'databaseUrl'>,
  folder: string,
): Promise<CompetitorResult> {
  await using stack = new AsyncDisposableStack()
  mkdirSync(folder)
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const databaseUrl = await openDatabase(stack, job.store)
  const input: CompetitorJob = { ...job, folder, databaseUrl }
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'vector-competitor.ts'), JSON.stringify(input)], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  stack.defer(() => child.kill())
  const texts = [child.stdout, child.stderr].map((stream) => new Response(stream).text())
  const [output = '', errors = ''] = await Promise.all(texts)
  await child.exited
  if (child.exitCode !== 0) throw new Error(/(?:error: )(.*)/.exec(errors)?.[1] ?? 'its process failed')
  return JSON.parse(output) as CompetitorResult
}

/** Enough memory for the vectors and their index. */
const postgresSettings = { shared_buffers: '1GB', max_wal_size: '8GB', checkpoint_timeout: '1h' }

async function openDatabase(stack: AsyncDisposableStack, store: StoreName): Promise<string | null> {
  const programs = store === 'pgvector' ? providePgvector() : null
  if (!programs) return null
  const postgres = await openPostgres(programs, postgresSettings)
  stack.defer(() => postgres.remove())
  return postgres.url
}

function print(figures: ShapeFigures): void {
  const line = (cells: Cells): string => cells.map((cell, at) => cell.padEnd(at === 0 ? 16 : 13)).join('')
  console.log(`\n${titleOf(figures)}\n${[searchHead, ...searchLines(figures)].map(line).join('\n')}`)
}
