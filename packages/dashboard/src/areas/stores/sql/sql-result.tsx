/** The rows of a statement, and what it did. */
import { EmptyState } from '../../../design/empty-state.tsx'
import { formatCount, formatDuration } from '../../../design/format/number.ts'
import { Card } from '../../../design/page.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import type { SqlAnswer } from '../requests.ts'

/** More would make the page slow; a LIMIT and an OFFSET read on. */
const shownRowsMax = 500
const shownCharsMax = 1000

type Row = SqlAnswer['results'][number]

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function Cell({ value }: { readonly value: unknown }) {
  if (value === null) return <span className="stores-null">NULL</span>
  const text = textOf(value)
  return (
    <span className="stores-cell">
      {text.slice(0, shownCharsMax)}
      {text.length > shownCharsMax && '…'}
    </span>
  )
}

const columnsOf = ([first]: readonly Row[]): readonly Column<{ readonly row: Row }>[] =>
  Object.keys(first ?? {}).map((name) => ({
    id: name,
    title: name,
    isNumeric: typeof first?.[name] === 'number',
    cell: ({ row }) => <Cell value={row[name]} />,
  }))

export function SqlResult({ answer: { results, meta } }: { readonly answer: SqlAnswer }) {
  const shown = results.slice(0, shownRowsMax).map((row, at) => ({ row, at }))
  return (
    <section className="stack" aria-label="Result">
      <p className="stores-note" role="status">
        {results.length === 1 ? '1 row' : `${formatCount(results.length)} rows`} · {formatCount(meta.changes)} changed ·{' '}
        {formatCount(meta.rows_read)} read · {formatDuration(meta.duration)}
        {results.length > shownRowsMax && ` · the first ${shownRowsMax} are shown`}
      </p>
      {results.length === 0 ? (
        <EmptyState icon="check" title="The statement gave no rows" />
      ) : (
        <Card isFlush>
          <Table label="Rows" rows={shown} columns={columnsOf(results)} keyOf={({ at }) => String(at)} />
        </Card>
      )}
    </section>
  )
}
