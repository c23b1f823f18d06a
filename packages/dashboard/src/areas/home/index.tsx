/** Home: the state of the server, what to look at, its latest failures and slow requests, and the tables. */
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useSchema } from '../../app/queries.ts'
import { tablePath } from '../../app/table-path.ts'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { AdviceCard } from './advice-card.tsx'
import { FirstSteps } from './first-steps.tsx'
import { Overview } from './overview.tsx'
import { SeenRequests } from './seen-requests.tsx'

export default function Home() {
  const permits = usePermits()
  const { data } = useSchema()
  const isNew = data !== undefined && Object.keys(data.tables).length === 0
  const advice = permits('system:advice:*:read') && <AdviceCard />
  return (
    <Page title="Home" description={`The state of ${location.host}.`}>
      <div className="stack">
        {isNew && <FirstSteps />}
        {permits('dashboard:overview:*:read') ? <Overview>{advice}</Overview> : advice}
        {permits('dashboard:requests:*:read') && (
          <div className="home-grid">
            <SeenRequests
              title="Latest failures"
              filter={{ status: '5xx' }}
              emptyTitle="No failures"
              emptyText="Requests that end with a status of 500 or more appear here."
            />
            <SeenRequests
              title="Slow requests"
              filter={{ minMs: String(slowMs) }}
              emptyTitle="No slow requests"
              emptyText={`Requests that take ${slowMs} ms or more appear here.`}
            />
          </div>
        )}
        {!isNew && <TablesCard />}
      </div>
    </Page>
  )
}

/** From here on the server traces the endpoint of a request. */
const slowMs = 100

const tablesShown = 12

function TablesCard() {
  const { data, error, refetch } = useSchema()
  const tables = Object.values(data?.tables ?? {})
  return (
    <Card title="Tables" isFlush={tables.length > 0}>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
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
