/** Home: the state of the server at a glance. */

import { Link } from 'wouter'
import { useHealth, useSchema } from '../../app/queries.ts'
import { tablePath } from '../../app/table-path.ts'
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, Facts, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'

export default function Home() {
  return (
    <Page title="Home" description="The state of this server.">
      <div className="home-grid">
        <HealthCard />
        <TablesCard />
      </div>
    </Page>
  )
}

function HealthCard() {
  const { data, error, refetch } = useHealth()
  return (
    <Card title="Health">
      {error !== null && data === undefined && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined ? (
        error === null && <Skeleton />
      ) : (
        <Facts
          facts={[
            [
              'Server',
              <Badge key="status" tone={data.status === 'ok' ? 'good' : 'bad'} hasDot>
                {data.status === 'ok' ? 'Healthy' : 'Unavailable'}
              </Badge>,
            ],
            ['Version', data.version],
            ['Time of the server', new Date(data.timestamp).toLocaleString('en')],
          ]}
        />
      )}
    </Card>
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
