/** How programs use a table: code to copy, with the names of this table. */
import type { TableDescription } from '../../../app/queries.ts'
import { CodeBlock } from '../../../design/code-block.tsx'
import { Card } from '../../../design/page.tsx'
import type { TableAddress } from '../location.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { clientGet, clientInsert, clientList, clientLive, curlGet, curlList } from './snippets.ts'

const sampleOf: Readonly<Record<string, unknown>> = {
  string: 'text',
  text: 'text',
  number: 1,
  boolean: true,
  datetime: '2026-11-24T09:30:00Z',
  json: {},
  geo: [13.4, 52.5],
}

/** Values for the required fields, or for the first one. */
function sampleValues({ fields }: TableDescription): Readonly<Record<string, unknown>> {
  const own = Object.entries(fields).filter(([name]) => !['id', 'createdAt', 'updatedAt'].includes(name))
  const required = own.filter(([, { required, readOnly }]) => required && !readOnly)
  const chosen = required.length > 0 ? required : own.slice(0, 1)
  return Object.fromEntries(
    chosen.map(([name, field]) => [name, field.enum?.[0] ?? field.default ?? sampleOf[field.type]]),
  )
}

export function ApiTab({
  address,
  table,
  query,
}: {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly query: RowQuery
}) {
  const { origin } = location
  return (
    <div className="data-tab stack">
      <Card title="List the records of this view">
        <div className="stack">
          <CodeBlock label="Client" code={clientList(address, query)} />
          <CodeBlock label="curl" code={curlList(address, query, origin)} />
        </div>
      </Card>
      <Card title="Get one">
        <div className="stack">
          <CodeBlock label="Client" code={clientGet(address, 'id')} />
          <CodeBlock label="curl" code={curlGet(address, 'id', origin)} />
        </div>
      </Card>
      <Card title="Insert">
        <CodeBlock label="Client" code={clientInsert(address, sampleValues(table))} />
      </Card>
      <Card title="Follow live">
        <CodeBlock label="Client" code={clientLive(address)} />
      </Card>
    </div>
  )
}
