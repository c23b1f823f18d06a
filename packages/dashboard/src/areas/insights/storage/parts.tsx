/** The parts of one table on disk: its records and each index. */
import { formatSize, type Measure, type StoredTable } from '../../../app/table-usage.ts'
import { Badge } from '../../../design/badge.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { ShareBar, type ShareKind } from './share-bar.tsx'

interface Part {
  readonly id: string
  readonly fields: string
  readonly note: string
  readonly kind: ShareKind
  readonly bytes: Measure
}

const partsOf = ({ bytes, indexes }: StoredTable): readonly Part[] => [
  { id: 'records', fields: 'Records', note: 'records', kind: 'records', bytes },
  ...indexes
    .map(
      (index): Part => ({
        id: `${index.kind} ${index.fields.join(', ')}`,
        fields: index.fields.length === 0 ? 'not in the configuration' : index.fields.join(', '),
        note: index.kind,
        kind: index.kind === 'search' ? 'search' : 'index',
        bytes: index.bytes,
      }),
    )
    .sort((one, other) => other.bytes.value - one.bytes.value),
]

export function Parts({ name, stored }: { readonly name: string; readonly stored: StoredTable }) {
  const parts = partsOf(stored)
  const largest = Math.max(...parts.map(({ bytes }) => bytes.value))
  const columns: readonly Column<Part>[] = [
    {
      id: 'part',
      title: 'Part',
      cell: ({ id, fields, note }) =>
        id === 'records' ? (
          fields
        ) : (
          <span className="storage-part">
            <code>{fields}</code> <Badge tone={note === 'unique' ? 'accent' : 'neutral'}>{note}</Badge>
          </span>
        ),
    },
    { id: 'bytes', title: 'Size', isNumeric: true, cell: ({ bytes }) => formatSize(bytes) },
    {
      id: 'share',
      title: 'Share',
      isOptional: true,
      cell: ({ kind, bytes }) => <ShareBar shares={[{ kind, value: bytes.value }]} max={largest} />,
    },
  ]
  return <Table label={`Parts of ${name}`} rows={parts} columns={columns} keyOf={({ id }) => id} />
}
