/** The first records that a bulk job would change: as they are, and as they will be. */
import type { TableDescription } from '../../../app/queries.ts'
import { Icon } from '../../../design/icons.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { CellValue } from '../grid/cell-value.tsx'
import type { Values } from '../record/writes.ts'
import type { Row } from '../rows/row.ts'

export interface PreviewTableProps {
  readonly table: TableDescription
  readonly rows: readonly Row[]
  readonly fields: readonly string[]
  /** The values that are set; null for a deletion. */
  readonly values: Values | null
}

export function PreviewTable({ table, rows, fields, values }: PreviewTableProps) {
  const storedValue = (row: Row, name: string) => (
    <CellValue value={row.values[name] ?? null} field={table.fields[name] ?? null} isCut={row.cut.has(name)} />
  )
  const columns = ['id', ...fields].map(
    (name, at): Column<Row> => ({
      id: name,
      title: name,
      isOptional: at > 1 && values === null,
      cell: (row) =>
        values !== null && Object.hasOwn(values, name) ? (
          <span className="data-bulk-change">
            <del>{storedValue(row, name)}</del>
            <Icon name="arrow-right" size={12} label="becomes" />
            <ins>
              <CellValue value={values[name]} field={table.fields[name] ?? null} />
            </ins>
          </span>
        ) : (
          storedValue(row, name)
        ),
    }),
  )
  return <Table label="The first records" rows={rows} columns={columns} keyOf={(row) => row.id} />
}
