/** Formats the figures of the vector run for `docs/benchmarks.md`. */

import { type Cells, markdownTable, measuredWith } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { CompetitorResult, SearchResult } from './vector-competitor.ts'
import { dimensions, type Shape } from './vector-data.ts'
import type { StoreName } from './vector-stores.ts'

export interface ComparedStore {
  readonly store: StoreName
  readonly result: CompetitorResult
}

export interface ShapeFigures {
  readonly shape: Shape
  readonly count: number
  /** The first one is exact: the recall of the others is relative to it. */
  readonly compared: readonly ComparedStore[]
}

/** Share of the results in `truth` that were found, over all queries: 0 to 1. */
export function recallOf(found: SearchResult['found'], truth: SearchResult['found']): number {
  const wanted = truth.reduce((sum, keys) => sum + keys.length, 0)
  const hits = truth.reduce((sum, keys, at) => sum + keys.filter((key) => found[at]?.includes(key)).length, 0)
  return wanted === 0 ? 1 : hits / wanted
}

const recallMin = 0.95

const accepted = { 10: 'all', 5: 'a half', 1: 'a tenth' }

export const searchHead: Cells = ['search', 'among', 'recall at 10', 'per second', 'p50 ms', 'p99 ms', 'budget']

export function searchLines({ compared }: ShapeFigures): Cells[] {
  const truth = compared[0]?.result.searches ?? []
  return compared.flatMap(({ store, result }) =>
    result.searches.map((search, at) => {
      const recall = recallOf(search.found, truth[at]?.found ?? [])
      const isOurs = store.startsWith('Plinth')
      return [
        store,
        accepted[search.tenths],
        recall.toFixed(3),
        search.perSecond.toFixed(0),
        search.p50Ms.toFixed(2),
        search.p99Ms.toFixed(2),
        isOurs ? `≥ ${recallMin} ${recall >= recallMin ? '✓' : '✗'}` : '',
      ]
    }),
  )
}

const buildHead: Cells = ['store', 'load s', 'build s', 'memory MB', 'disk MB']

const megabytes = (bytes: number | null): string => (bytes === null ? '' : (bytes / 1024 / 1024).toFixed(0))

const buildLines = ({ compared }: ShapeFigures): Cells[] =>
  compared.map(({ store, result }) => [
    store,
    result.loadSeconds.toFixed(1),
    result.buildSeconds.toFixed(1),
    megabytes(result.memoryBytes),
    megabytes(result.diskBytes),
  ])

export const titleOf = ({ shape, count }: Pick<ShapeFigures, 'shape' | 'count'>): string =>
  `${count.toLocaleString('en-US')} vectors of ${dimensions} dimensions, ${shape}`

/** All figures of a run as Markdown; `missing` lists unavailable stores with the reason. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  figures: readonly ShapeFigures[],
  missing: readonly string[],
): string {
  const sections = figures.flatMap((each) => [
    `### ${titleOf(each)}`,
    markdownTable(searchHead, searchLines(each)),
    markdownTable(buildHead, buildLines(each)),
  ])
  return [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), ...missing, ...sections].join('\n\n')
}
