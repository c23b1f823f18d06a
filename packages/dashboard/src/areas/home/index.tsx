/** Home: the state of the server at a glance, its latest failures, and the tables. */
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useSchema } from '../../app/queries.ts'
import { tablePath } from '../../app/table-path.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Failures } from './failures.tsx'
import { Overview } from './overview.tsx'

export default function Home() {
  const permits = usePermits()
  return (
    <Page title="Home" description={`The state of ${location.host}.`}>
      <div className="stack">
        {permits('dashboard:overview:*:read') && <Overview />}
        <div className="home-grid">
          <TablesCard />
          {permits('dashboard:requests:*:read') && <Failures />}
        </div>
      </div>
    </Page>
  )
}

const tablesShown = 12

function TablesCard() {
  const { data, error, refetch } = useSchema()
  const tables = Object.values(data?.tables ?? {})
  return (
    <Card title="Tables" isFlush={tables.length > 0}>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data !== undefined && tables.length === 0 && (
        <EmptyState icon="table" title="No tables yet">
          Declare one in <code>plinth.config.ts</code>; it appears here as soon as the server has loaded it.
        </EmptyState>
      )}
      <ul className="home-tables">
        {tables.slice(0, tablesShown).map((table) => (
          <li key={`${table.namespace}.${table.name}`}>
            <Link href={tablePath(table, data?.namespaces ?? {})}>
              <span>{table.name}</span>
              <span className="home-tables-note">
                {table.namespace} · {Object.keys(table.fields).length} fields
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  )
}
