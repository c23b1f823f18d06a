/**
 * The summary at the top of `docs/benchmarks.md`: one line per kind of work, taken from the measured tables of the same
 * page whenever one of them is written, so that it never differs from them.
 */
import { type Cells, integer, type MeasuredPart, markdownTable, measuredPart } from './report.ts'

/** A cell of a measured table: a line by its first cell, and by its baseline where it has several. */
interface CellOf {
  readonly line: string
  readonly versus?: string
  readonly column: string
}

interface SummaryLine {
  readonly title: string
  readonly part: MeasuredPart
  readonly ours: CellOf
  readonly unit: string
  readonly baseline: string
  /** One cell, or two figures whose quotient is the ratio. */
  readonly ratio: readonly [CellOf] | readonly [ours: CellOf, theirs: CellOf]
}

type Compared = Pick<SummaryLine, 'title' | 'part'> & {
  readonly line: string
  readonly versus: string
  readonly by: 'per second' | 'CPU µs'
}

/** A line of the tables that all parts with an HTTP load share. */
const compared = ({ title, part, line, versus, by }: Compared): SummaryLine => ({
  title,
  part,
  ours: { line, column: by },
  unit: by === 'CPU µs' ? 'µs of CPU' : 'a second',
  baseline: versus,
  ratio: [{ line, versus, column: by === 'CPU µs' ? 'CPU ratio' : 'ratio' }],
})

const onPostgres = (title: string, line: string): SummaryLine => ({
  title: `PostgreSQL: ${title}`,
  part: 'postgres',
  ours: { line, column: '1 node/s' },
  unit: 'a second',
  baseline: 'pgbench',
  ratio: [{ line, column: '1 node' }],
})

const summaryLines: readonly SummaryLine[] = [
  compared({
    title: 'Point read under a rule, signed-in user',
    part: 'sqlite',
    line: 'Point read under a rule, signed-in user',
    versus: 'bare handler',
    by: 'CPU µs',
  }),
  compared({
    title: 'List of 30 with total',
    part: 'sqlite',
    line: 'Filtered list of 30 with total',
    versus: 'minimal handler',
    by: 'CPU µs',
  }),
  ...['PocketBase', 'TrailBase'].flatMap((versus) =>
    ['Point read', 'List of 30 with total', 'Insert'].map((line) =>
      compared({ title: line, part: 'peers', line, versus, by: 'CPU µs' }),
    ),
  ),
  compared({
    title: 'List of 30 with author and comments',
    part: 'queries',
    line: 'List of 30 with author and latest 3 comments',
    versus: 'PocketBase',
    by: 'CPU µs',
  }),
  compared({
    title: 'Durable insert',
    part: 'sqlite',
    line: 'Insert, 64 in flight',
    versus: 'loop, 64 rows per commit',
    by: 'per second',
  }),
  onPostgres('point read', 'Point read'),
  onPostgres('insert', 'Insert, 64 in flight'),
  compared({
    title: 'Sign-in with a password',
    part: 'users',
    line: 'Sign-in, 50 in flight',
    versus: 'bare hash, as many at once',
    by: 'CPU µs',
  }),
  compared({
    title: 'Download of 1 MB',
    part: 'storage',
    line: 'Download of 1 MB, 16 in flight; MB',
    versus: 'nginx',
    by: 'CPU µs',
  }),
  {
    title: 'Change delivered to 1,000 subscribers',
    part: 'live',
    ours: { line: '1,000', column: 'deliveries/s' },
    unit: 'deliveries a second',
    baseline: "the runtime's publish",
    ratio: [{ line: '1,000', column: 'ratio' }],
  },
  {
    title: 'Action in rooms of 100 players',
    part: 'rooms',
    ours: { line: 'Plinth', column: 'CPU µs per action' },
    unit: 'µs of CPU',
    baseline: 'Colyseus, nothing saved',
    ratio: [{ line: 'Colyseus', column: 'CPU ratio' }],
  },
  {
    title: 'Vector search, 100,000 of 384 dimensions',
    part: 'vector',
    ours: { line: 'Plinth', column: 'clusters: searches/s' },
    unit: 'a second',
    baseline: 'pgvector',
    ratio: [
      { line: 'Plinth', column: 'clusters: searches/s' },
      { line: 'pgvector', column: 'clusters: searches/s' },
    ],
  },
  compared({
    title: 'Key-value set, on disk',
    part: 'kv',
    line: 'Set, on disk, 64 in flight',
    versus: 'Redis SET, on disk',
    by: 'per second',
  }),
]

interface Table {
  readonly head: Cells
  readonly lines: readonly Cells[]
}

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())

/** The tables of a Markdown text. An empty first cell means the same line as above. */
function tablesOf(markdown: string): Table[] {
  const blocks = markdown
    .trim()
    .split(/\n{2,}/)
    .filter((block) => block.startsWith('|'))
  return blocks.map((block) => {
    const [head = [], , ...rows] = block.split('\n').map(cellsOf)
    const lines: Cells[] = []
    for (const [first = '', ...rest] of rows) lines.push([first || (lines.at(-1)?.[0] ?? ''), ...rest])
    return { head, lines }
  })
}

/** The cell without the mark of its budget; undefined where the run did not measure it. */
function findCell(tables: readonly Table[], { line, versus, column }: CellOf): string | undefined {
  for (const { head, lines } of tables) {
    const at = head.indexOf(column)
    if (at < 1) continue
    // The figures of the server are in the first line of a scenario, the ratios in that of each baseline.
    const found = lines.find(
      (cells) => cells[0] === line && (versus === undefined || cells[head.indexOf('compared with')] === versus),
    )
    if (found) return found[at]?.replace(/ [✓✗]$/, '')
  }
  return undefined
}

const numberOf = (cell: string): number => Number(cell.replaceAll(',', ''))

/** `0.22×` or `7.8×`. */
const times = (ratio: number): string => `${ratio.toFixed(ratio < 1 ? 2 : 1)}×`

function lineOf(page: string, { title, part, ours, unit, baseline, ratio }: SummaryLine): Cells[] {
  const tables = tablesOf(measuredPart(page, part))
  const figure = findCell(tables, ours)
  const [first, second] = ratio.map((cell) => findCell(tables, cell))
  if (!figure || !first || (ratio.length === 2 && !second)) return []
  const share = second === undefined ? Number.parseFloat(first) / 100 : numberOf(first) / numberOf(second)
  const shown = numberOf(figure) < 100 ? figure : integer(numberOf(figure))
  return [[title, `${shown} ${unit}`, baseline, times(share)]]
}

/** The summary of a page; lines whose figures the page does not have are left out. */
export const summaryOf = (page: string): string =>
  markdownTable(
    ['what', 'Plinth', 'compared with', 'ratio'],
    summaryLines.flatMap((line) => lineOf(page, line)),
  )
