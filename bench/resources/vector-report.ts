/** Formats the figures of the vector run for `docs/benchmarks.md`. */

import { type Cells, integer, markdownTable, measuredWith } from '../report.ts'
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

const megabytes = (bytes: number | null): string => (bytes === null ? '' : (bytes / 1024 / 1024).toFixed(0))

/**
 * The page has a line per store: recall and searches per second in all vectors of each shape, and what building the
 * first shape took.
 */
export function pageTable(figures: readonly ShapeFigures[]): string {
  const [first] = figures
  const cells = ({ compared }: ShapeFigures, store: StoreName): Cells => {
    const truth = compared[0]?.result.searches[0]
    const found = compared.find((each) => each.store === store)?.result.searches[0]
    return found && truth ? [recallOf(found.found, truth.found).toFixed(3), integer(found.perSecond)] : ['', '']
  }
  const lines = first?.compared.map(({ store, result }) => [
    store,
    ...figures.flatMap((each) => cells(each, store)),
    (result.loadSeconds + result.buildSeconds).toFixed(1),
    megabytes(result.memoryBytes),
    megabytes(result.diskBytes),
  ])
  const heads = figures.flatMap(({ shape }) => [`${shape}: recall`, `${shape}: searches/s`])
  return markdownTable(['store', ...heads, 'build s', 'memory MB', 'disk MB'], lines ?? [])
}

export const titleOf = ({ shape, count }: Pick<ShapeFigures, 'shape' | 'count'>): string =>
  `${count.toLocaleString('en-US')} vectors of ${dimensions} dimensions, ${shape}`

/** All figures of a run as Markdown; `missing` lists unavailable stores with the reason. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  figures: readonly ShapeFigures[],
  missing: readonly string[],
): string {
  const counts = [...new Set(figures.map(({ count }) => integer(count)))].join(', ')
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    ...missing,
    `${counts} vectors of ${dimensions} dimensions in each shape.`,
    pageTable(figures),
  ].join('\n\n')
}
