/** The area "Data": namespaces, tables and their records. */
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { useSchema } from '../../app/queries.ts'
import { useUrlState } from '../../app/url-state.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { SplitPane } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { findTable, parseLocation, type TableAddress } from './location.ts'
import { Sidebar } from './sidebar.tsx'
import { TableView } from './table/table-view.tsx'

const SchemaDiagram = lazy(() => import('./diagram/diagram.tsx').then((module) => ({ default: module.SchemaDiagram })))

const sampleTable = `export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: { schema: { title: { type: 'string', required: true } } },
      },
    },
  },
})`

export default function Data() {
  const [path] = useLocation()
  const url = useUrlState()
  const { data: schema, error, refetch } = useSchema()
  const current = useMemo(() => schema && parseLocation(path, schema.namespaces), [schema, path])
  const [isSideShown, setSideShown] = useState(true)
  const shownTable = current?.table ?? null
  // On narrow screens, choosing a table shows it.
  useEffect(() => setSideShown(shownTable === null), [shownTable])

  if (error !== null && schema === undefined)
    return (
      <div className="data-tab">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    )
  if (schema === undefined || current === undefined)
    return (
      <div className="data-tab">
        <Skeleton lines={8} />
      </div>
    )
  if (Object.keys(schema.tables).length === 0)
    return (
      <EmptyState icon="data" title="No tables yet">
        <p>
          Declare one in <code>plinth.config.ts</code>. It appears here as soon as the server has loaded it.
        </p>
        <CodeBlock code={sampleTable} />
      </EmptyState>
    )
  if (url.get('diagram') !== null)
    return (
      <Suspense fallback={<Skeleton lines={8} />}>
        <SchemaDiagram schema={schema} onBack={() => url.set({ diagram: null })} />
      </Suspense>
    )
  const { namespace, instanceId, table: name } = current
  const table = namespace !== null && name !== null ? findTable(schema, namespace, name) : undefined
  const address: TableAddress | null = namespace !== null && table ? { namespace, instanceId, table: table.name } : null
  return (
    <SplitPane isSideShown={isSideShown} side={<Sidebar schema={schema} current={current} />}>
      {address !== null && table ? (
        <TableView address={address} table={table} schema={schema} onBack={() => setSideShown(true)} />
      ) : (
        <EmptyState icon="table" title={name === null ? 'Choose a table' : `There is no table ${name}`}>
          {namespace !== null && schema.namespaces[namespace]?.instance && instanceId === null
            ? `Each instance of ${namespace} has its own records. Choose one beside.`
            : 'Tables are listed by namespace, in the order of the configuration.'}
        </EmptyState>
      )}
    </SplitPane>
  )
}
