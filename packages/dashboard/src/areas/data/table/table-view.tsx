/** A table: its rows as a grid, its declaration, and how programs use it. */

import { usePermits } from '../../../app/permissions.ts'
import type { Schema, TableDescription } from '../../../app/queries.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { Tabs } from '../../../design/tabs.tsx'
import { pagePath, type TableAddress } from '../location.ts'
import { readRowQuery } from '../rows/row-query.ts'
import { ApiTab } from './api-tab.tsx'
import { RowsTab } from './rows-tab.tsx'
import { SchemaTab } from './schema-tab.tsx'

export interface TableViewProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly schema: Schema
  /** On narrow screens: shows the list of tables. */
  readonly onBack: () => void
}

export function TableView({ address, table, schema, onBack }: TableViewProps) {
  const url = useUrlState()
  const permits = usePermits()
  const canWrite = permits(`db:table:${table.name}:write`)
  const tab = url.get('tab') ?? 'rows'
  return (
    <>
      <header className="data-head">
        <Button className="data-back" kind="quiet" size="small" icon="chevron-left" onClick={onBack}>
          Tables
        </Button>
        <h1 className="data-title">
          <span className="data-title-path">{[address.namespace, address.instanceId].filter(Boolean).join(' / ')}</span>
          {table.name}
        </h1>
        <Tabs
          label="Views of the table"
          current={tab}
          tabs={[
            { id: 'rows', label: 'Rows', href: url.href({ tab: null }) },
            { id: 'schema', label: 'Schema', href: `${pagePath(address)}?tab=schema` },
            { id: 'api', label: 'API', href: url.href({ tab: 'api', row: null }) },
          ]}
        />
      </header>
      {tab === 'schema' ? (
        <SchemaTab address={address} table={table} schema={schema} />
      ) : tab === 'api' ? (
        <ApiTab address={address} table={table} query={readRowQuery(url.get)} />
      ) : (
        <RowsTab key={pagePath(address)} address={address} table={table} canWrite={canWrite} />
      )}
    </>
  )
}
