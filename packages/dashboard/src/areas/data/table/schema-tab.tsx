/** The declaration of a table: its fields, indexes and search. */
import { Link } from 'wouter'
import type { FieldDescription, Schema, TableDescription } from '../../../app/queries.ts'
import { session } from '../../../app/session-store.ts'
import { useStore } from '../../../app/store.ts'
import { formatRows, formatSize, useTableUsage } from '../../../app/table-usage.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { Badge } from '../../../design/badge.tsx'
import { Button } from '../../../design/button.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { Icon } from '../../../design/icons.tsx'
import { Card } from '../../../design/page.tsx'
import { Table } from '../../../design/table.tsx'
import { iconOf } from '../grid/grid-header.tsx'
import { findTable, pagePath, referringTo, type TableAddress } from '../location.ts'
import { ShapeCard, shapeParameter } from '../shape/shape-card.tsx'

interface NamedField extends FieldDescription {
  readonly name: string
}

/** Constraints in the words of the configuration. */
function constraintsOf(field: FieldDescription): readonly string[] {
  return [
    field.required ? 'required' : null,
    field.unique ? 'unique' : null,
    field.readOnly ? 'computed' : null,
    field.hidden ? 'hidden from users' : null,
    field.min === undefined ? null : `min ${field.min}`,
    field.max === undefined ? null : `max ${field.max}`,
    field.pattern === undefined ? null : `pattern ${field.pattern}`,
    field.enum === undefined ? null : field.enum.join(' | '),
    field.default === undefined ? null : `default ${JSON.stringify(field.default)}`,
  ].filter((text) => text !== null)
}

export function SchemaTab({
  address,
  table,
  schema,
}: {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly schema: Schema
}) {
  const fields: readonly NamedField[] = Object.entries(table.fields).map(([name, field]) => ({ name, ...field }))
  const referring = referringTo(schema, address)
  const usage = useTableUsage().data?.tables.find(
    (one) => one.namespace === table.namespace && one.table === table.name && !one.isPerInstance,
  )
  const sizeOf = (columns: readonly string[]): string => {
    const stored = usage?.stored?.indexes.find((one) => one.kind !== 'search' && one.fields.join() === columns.join())
    return stored ? formatSize(stored.bytes) : ''
  }
  const tableLink = (name: string) => <Link href={pagePath({ ...address, table: name })}>{name}</Link>
  const url = useUrlState()
  const current = useStore(session.current)
  // A table without declared fields cannot get some.
  const canChange = current?.mode === 'development' && !current.viewing && !table.schemaless
  const isChanging = canChange && url.get(shapeParameter) !== null
  return (
    <div className="data-tab stack">
      {isChanging && <ShapeCard address={address} table={table} url={url} />}
      <Card
        title="Fields"
        isFlush
        actions={
          canChange &&
          !isChanging && (
            <Button size="small" icon="edit" onClick={() => url.set({ [shapeParameter]: '[]' })}>
              Change the table
            </Button>
          )
        }
      >
        <Table
          label="Fields"
          rows={fields}
          keyOf={({ name }) => name}
          columns={[
            {
              id: 'name',
              title: 'Name',
              cell: (field) => (
                <span className="schema-name">
                  <Icon name={iconOf({ name: field.name, field })} size={14} />
                  <code>{field.name}</code>
                </span>
              ),
            },
            { id: 'type', title: 'Type', cell: ({ type, enum: values }) => <Badge>{values ? 'enum' : type}</Badge> },
            {
              id: 'constraints',
              title: 'Constraints',
              cell: (field) => <span className="schema-note">{constraintsOf(field).join(' · ')}</span>,
            },
            {
              id: 'references',
              title: 'References',
              isOptional: true,
              cell: ({ references }) =>
                references === undefined
                  ? null
                  : findTable(schema, table.namespace, references)
                    ? tableLink(references)
                    : references,
            },
          ]}
        />
        {table.schemaless && (
          <p className="schema-free">This table declares no further fields: records may have any.</p>
        )}
      </Card>
      <Card title="Indexes" isFlush={table.indexes.length > 0}>
        {table.indexes.length === 0 ? (
          <EmptyState icon="bolt" title="No indexes besides the id">
            Filters and sorts on other fields read the whole table. Add <code>indexes: [['field']]</code> to the table
            in <code>plinth.config.ts</code>.
          </EmptyState>
        ) : (
          <Table
            label="Indexes"
            rows={table.indexes}
            keyOf={(index) => index.fields.join()}
            columns={[
              { id: 'fields', title: 'Fields', cell: (index) => <code>{index.fields.join(', ')}</code> },
              {
                id: 'unique',
                title: 'Kind',
                cell: ({ unique }) => (unique ? <Badge tone="accent">unique</Badge> : 'index'),
              },
              { id: 'size', title: 'Size', isNumeric: true, cell: (index) => sizeOf(index.fields) },
            ]}
          />
        )}
      </Card>
      <Card title="Storage, search and relations">
        <dl className="facts">
          {usage?.stored && (
            <div>
              <dt>Stored</dt>
              <dd>
                <Link href={`/insights?tab=tables&of=${encodeURIComponent(`${usage.namespace}.${usage.table}`)}`}>
                  {formatRows(usage.stored.rows)} records, {formatSize(usage.stored.bytes)}
                </Link>
              </dd>
            </div>
          )}
          <div>
            <dt>Full-text search</dt>
            <dd>{table.search.length === 0 ? 'not declared' : table.search.join(', ')}</dd>
          </div>
          <div>
            <dt>Referred to by</dt>
            <dd>
              {referring.length === 0
                ? 'no table'
                : referring.map((one, at) => (
                    <span key={`${one.table}.${one.field}`}>
                      {at > 0 && ', '}
                      {tableLink(one.table)}.{one.field}
                    </span>
                  ))}
            </dd>
          </div>
        </dl>
      </Card>
    </div>
  )
}
