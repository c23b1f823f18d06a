/**
 * A schedule of every second on three servers, of which one is killed in the middle of a run, and started again once
 * another one has taken its run over. `PLINTH_SCHEDULE_SECONDS` and `PLINTH_SCHEDULE_KILLS` make it longer.
 */
import { describe, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, sharedEngine } from '../../harness/engines.ts'
import { type ProcessNode, spawnNodes } from '../../harness/processes/nodes.ts'

const seconds = Number(process.env.PLINTH_SCHEDULE_SECONDS ?? 50)
const killsMax = Number(process.env.PLINTH_SCHEDULE_KILLS ?? 1)

const configText = `export default {
  databases: { shared: { tables: { runs: { schema: { at: { type: 'string' } }, access: {} } } } },
}`

/** What happened, in order: all processes append to one file. */
interface Entry {
  readonly event: 'begin' | 'stuck' | 'end' | 'killed'
  /** The process of the server. */
  readonly server: number
  /** The time of the run; empty of a kill. */
  readonly at: string
}

/** A run writes its row and then, while the file `stick` exists, never ends by itself. */
const functionsText = (folder: string): string => `import { appendFileSync, existsSync } from 'node:fs'
import { functionsFor } from 'plinth/functions'
const { schedule } = functionsFor()
const folder = ${JSON.stringify(folder)}
export const everySecond = schedule('* * * * * *', {}, async (ctx) => {
  const at = ctx.scheduledAt.toISOString()
  const note = (event) => {
    const entry = { event, server: process.ppid, at }
    appendFileSync(folder + '/journal', JSON.stringify(entry) + '\\n')
  }
  note('begin')
  await ctx.service.db('shared').runs.insert({ at })
  if (existsSync(folder + '/stick')) {
    note('stuck')
    await new Promise(() => {})
  }
  note('end')
})
`

function journalIn(folder: string) {
  const path = join(folder, 'journal')
  writeFileSync(path, '')
  const entries = (): Entry[] =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  return {
    entries,
    add: (entry: Entry): void => appendFileSync(path, `${JSON.stringify(entry)}\n`),
    async until<Found>(find: (entries: readonly Entry[]) => Found | null | undefined | false): Promise<Found> {
      for (;;) {
        const found = find(entries())
        if (found) return found
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
  }
}
type Journal = ReturnType<typeof journalIn>

/** Kills the server of a stuck run, and starts it again once another one has ended the run. Returns its time. */
async function killStuck(nodes: readonly ProcessNode[], journal: Journal, folder: string): Promise<string> {
  const before = journal.entries().length
  writeFileSync(join(folder, 'stick'), '')
  const stuck = await journal.until((entries) => entries.slice(before).find(({ event }) => event === 'stuck'))
  rmSync(join(folder, 'stick'))
  const [node] = nodes.filter(({ server }) => server.pid === stuck.server) as [ProcessNode]
  await node.restart(async () => {
    journal.add({ event: 'killed', server: stuck.server, at: '' })
    const end = await journal.until((entries) => entries.find(({ event, at }) => event === 'end' && at === stuck.at))
    expect(end.server).not.toBe(stuck.server)
  })
  return stuck.at
}

/** Runs begin in order, each after the end of the one before it or of its server, and each once unless it was stuck. */
function expectOneAfterTheOther(entries: readonly Entry[], stuck: readonly string[]): void {
  let running: Entry | null = null
  const begun: string[] = []
  for (const entry of entries) {
    if (entry.event === 'begin') {
      expect(running).toBeNull()
      running = entry
      begun.push(entry.at)
    } else if (entry.event === 'end') {
      expect(running).toEqual({ ...entry, event: 'begin' })
      running = null
    } else if (entry.event === 'killed') {
      expect(running?.server).toBe(entry.server)
      running = null
    }
  }
  const times = [...new Set(begun)]
  expect(begun).toEqual(times.flatMap((at) => (stuck.includes(at) ? [at, at] : [at])))
  const [first = ''] = times
  expect(times).toEqual(times.map((_, second) => new Date(Date.parse(first) + second * 1000).toISOString()))
}

if (sharedEngine)
  describe('schedules on three servers', () => {
    test(
      '[FN-SCHEDULE-1, FN-JOB-3, FN-EFFECT-1] each second runs once, in order and alone, while servers are killed',
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'plinth-schedules-'))
        const journal = journalIn(folder)
        const cluster = await spawnNodes(configText, sharedEngine as Engine, 3, {
          files: { 'functions/index.ts': functionsText(folder) },
        })
        try {
          const ended = (count: number) =>
            journal.until((entries) => entries.filter(({ event }) => event === 'end').length >= count)
          const stuck: string[] = []
          for (let kill = 1; kill <= killsMax; kill++) {
            await ended(((kill - 1) * seconds) / killsMax + 3)
            stuck.push(await killStuck(cluster.nodes, journal, folder))
          }
          await ended(seconds)
          for (const { server } of cluster.nodes) await server.terminate()
          const entries = journal.entries()
          expectOneAfterTheOther(entries, stuck)
          const [node] = cluster.nodes as [ProcessNode]
          await node.server.start()
          const times = [...new Set(entries.map(({ at }) => at).filter(Boolean))]
          const { body } = await node.server.service.get(
            `/api/db/shared/tables/runs?limit=1000&sort=at:asc&filter=${encodeURIComponent(JSON.stringify([['at', '<=', times.at(-1)]]))}`,
          )
          expect(body.items.map(({ at }: { at: string }) => at)).toEqual(times)
          expect(new Set(entries.map(({ server }) => server)).size).toBeGreaterThan(1)
          console.log(`${times.length} seconds, ${stuck.length} kills`)
        } finally {
          await cluster.remove()
          rmSync(folder, { recursive: true, force: true })
        }
      },
      seconds * 2000 + killsMax * 120_000 + 120_000,
    )
  })
