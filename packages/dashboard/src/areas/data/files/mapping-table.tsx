/** The columns of a file, with values of the first records, and the field that each one is. */
import type { TableDescription } from '../../../app/queries.ts'
import { Select } from '../../../design/select.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { type Head, importable, type Mapping } from './source-file.ts'

const leftOut = '\u0000'

export interface MappingTableProps {
  readonly table: TableDescription
  readonly head: Head
  readonly mapping: Mapping
  readonly onChange: (mapping: Mapping) => void
}

export function MappingTable({ table, head, mapping, onChange }: MappingTableProps) {
  const optionsOf = (column: string) => {
    const names = importable(table)
    const own = table.schemaless && !names.includes(column) ? [column] : []
    return [{ value: leftOut, label: 'Leave out' }, ...[...names, ...own].map((value) => ({ value, label: value }))]
  }
  const columns: readonly Column<string>[] = [
    { id: 'column', title: 'Column', cell: (column) => <span dir="auto">{column}</span> },
    {
      id: 'samples',
      title: 'First values',
      isOptional: true,
      cell: (column) => (
        <span className="data-import-samples" dir="auto">
          {(head.samples[column] ?? []).join(' · ')}
        </span>
      ),
    },
    {
      id: 'field',
      title: 'Field',
      cell: (column) => (
        <Select
          label={`Field of ${column}`}
          value={mapping[column] ?? leftOut}
          options={optionsOf(column)}
          onChange={(name) => onChange({ ...mapping, [column]: name === leftOut ? null : name })}
        />
      ),
    },
  ]
  return <Table label="Columns of the file" rows={head.columns} columns={columns} keyOf={(column) => column} />
}

/** A field that two columns are; null if there is none. */
export function findTwice(mapping: Mapping): string | null {
  const names = Object.values(mapping).filter((name) => name !== null)
  return names.find((name, at) => names.indexOf(name) !== at) ?? null
}
