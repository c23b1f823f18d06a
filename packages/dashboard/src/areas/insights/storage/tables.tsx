/** What each table takes on disk: its records, its indexes, and what searches read. */
import { Link } from 'wouter'
import {
  formatRows,
  formatSize,
  type Measure,
  type StoredTable,
  sumOf,
  type TableUsage,
  useTableUsage,
} from '../../../app/table-usage.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { formatCount } from '../../../design/format/number.ts'
import { formatTime } from '../../../design/format-time.ts'
import { Card, type Fact, Facts } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { Parts } from './parts.tsx'
import { type Share, ShareBar, ShareLegend, shareKinds } from './share-bar.tsx'

interface StoredUsage extends TableUsage {
  readonly stored: StoredTable
}

const isStored = (usage: TableUsage): usage is StoredUsage => usage.stored !== null
const keyOf = ({ namespace, table }: TableUsage): string => `${namespace}.${table}`

const indexBytesOf = ({ indexes }: StoredTable): Measure => sumOf(indexes.map(({ bytes }) => bytes))
const totalOf = (stored: StoredTable): Measure => sumOf([stored.bytes, indexBytesOf(stored)])

const sharesOf = ({ bytes, indexes }: StoredTable): readonly Share[] => {
  const of = (isSearch: boolean): number =>
    sumOf(indexes.filter(({ kind }) => (kind === 'search') === isSearch).map((index) => index.bytes)).value
  return [
    { kind: 'records', value: bytes.value },
    { kind: 'index', value: of(false) },
    { kind: 'search', value: of(true) },
  ]
}

const columnsOf = (largest: number): readonly Column<StoredUsage>[] => [
  {
    id: 'table',
    title: 'Table',
    cell: ({ namespace, table }) => (
      <span className="storage-name">
        <span>{namespace}.</span>
        {table}
      </span>
    ),
  },
  { id: 'rows', title: 'Rows', isNumeric: true, cell: ({ stored }) => formatRows(stored.rows) },
  { id: 'bytes', title: 'Records', isNumeric: true, isOptional: true, cell: ({ stored }) => formatSize(stored.bytes) },
  {
    id: 'indexes',
    title: 'Indexes',
    isNumeric: true,
    isOptional: true,
    cell: ({ stored }) => formatSize(indexBytesOf(stored)),
  },
  { id: 'total', title: 'Total', isNumeric: true, cell: ({ stored }) => formatSize(totalOf(stored)) },
  {
    id: 'share',
    title: 'Share',
    isOptional: true,
    cell: ({ stored }) => <ShareBar shares={sharesOf(stored)} max={largest} />,
  },
]

export function Tables() {
  const url = useUrlState()
  const { data, error, refetch } = useTableUsage()
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined || data.measuredAt === null) return <Skeleton lines={10} />
  const stored = data.tables
    .filter(isStored)
    .sort((one, other) => totalOf(other.stored).value - totalOf(one.stored).value)
  if (stored.length === 0)
    return (
      <EmptyState icon="data" title="Nothing to measure">
        Tables that are declared in <code>plinth.config.ts</code> are listed here with what they take on disk.
      </EmptyState>
    )
  const open = stored.find((usage) => keyOf(usage) === url.get('of'))
  const toggle = (usage: TableUsage) => url.set({ of: usage === open ? null : keyOf(usage) }, { replace: true })
  return (
    <div className="stack">
      <Summary tables={stored} />
      <Card title="Tables" isFlush actions={<ShareLegend kinds={shareKinds} />}>
        <Table
          label="Tables by bytes"
          rows={stored}
          columns={columnsOf(totalOf((stored[0] as StoredUsage).stored).value)}
          keyOf={keyOf}
          onOpen={toggle}
          isSelected={(usage) => usage === open}
        />
      </Card>
      {open !== undefined && (
        <Card
          title={<code>{keyOf(open)}</code>}
          isFlush
          actions={<Link href={schemaPath(open)}>{open.isPerInstance ? 'Instances' : 'Schema'}</Link>}
        >
          <Parts name={keyOf(open)} stored={open.stored} />
        </Card>
      )}
      <Note tables={data.tables} measuredAt={data.measuredAt} />
    </div>
  )
}

const schemaPath = ({ namespace, table, isPerInstance }: TableUsage): string =>
  isPerInstance
    ? `/data/${encodeURIComponent(namespace)}?table=${encodeURIComponent(table)}`
    : `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`

function Summary({ tables }: { readonly tables: readonly StoredUsage[] }) {
  const sum = (of: (stored: StoredTable) => Measure): Measure => sumOf(tables.map(({ stored }) => of(stored)))
  const figures: readonly Fact[] = [
    ['Tables', formatCount(tables.length)],
    ['Rows', formatRows(sum(({ rows }) => rows))],
    ['Records', formatSize(sum(({ bytes }) => bytes))],
    ['Indexes', formatSize(sum(indexBytesOf))],
  ]
  return <Facts facts={figures} className="insights-figures" />
}

/** How the numbers were found, and what is not among them. */
function Note({ tables, measuredAt }: { readonly tables: readonly TableUsage[]; readonly measuredAt: string }) {
  const shown = tables.filter(isStored)
  const isEstimated = shown.some(({ stored }) =>
    [stored.rows, totalOf(stored)].some(({ precision }) => precision !== 'exact'),
  )
  const apart = tables.filter(({ stored, isPerInstance }) => stored === null && isPerInstance)
  const failed = tables.filter(({ stored, isPerInstance }) => stored === null && !isPerInstance)
  return (
    <p className="insights-note">
      Measured {formatTime(measuredAt)}.{isEstimated && ' ≈ is estimated from a part of a large table.'}
      {apart.length > 0 && ` Not measured, since instances are files of their own: ${apart.map(keyOf).join(', ')}.`}
      {failed.length > 0 && ` Could not be measured: ${failed.map(keyOf).join(', ')}.`}
    </p>
  )
}
