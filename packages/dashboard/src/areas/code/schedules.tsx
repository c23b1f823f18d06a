/** The schedules with their next and last runs. */
import { Link } from 'wouter'
import { Badge } from '../../design/badge.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card, Facts } from '../../design/page.tsx'
import { CodePage, linesHref } from './code-page.tsx'
import { jobHref, StatusBadge } from './job-table.tsx'
import { type Schedule, useSchedules } from './requests.ts'

export function Schedules() {
  const query = useSchedules()
  return (
    <CodePage current="schedules" description="Functions that run at times." query={query}>
      {query.data?.length === 0 && <NoSchedules />}
      <div className="code-grid">
        {query.data?.map((schedule) => (
          <ScheduleCard key={schedule.name} schedule={schedule} />
        ))}
      </div>
    </CodePage>
  )
}

const timeOf = (iso: string | null, otherwise: string) =>
  iso === null ? otherwise : <span title={formatTime(iso)}>{formatAge(iso)}</span>

const ScheduleCard = ({ schedule: { name, cron, tz, nextAt, lastAt, runs } }: { readonly schedule: Schedule }) => (
  <Card title={name} actions={<Link href={linesHref({ function: name })}>Logs</Link>}>
    <Facts
      facts={[
        [
          'When',
          <span key="cron">
            <code>{cron}</code> <Badge>{tz}</Badge>
          </span>,
        ],
        ['Next run', timeOf(nextAt, 'never')],
        ['Last run', timeOf(lastAt, 'not yet')],
      ]}
    />
    {runs.length > 0 && (
      <ul className="code-runs" aria-label={`Latest runs of ${name}`}>
        {runs.map((run) => (
          <li key={run.id}>
            <Link href={jobHref(run.id)}>{formatTime(run.runAt)}</Link>
            <StatusBadge status={run.status} />
            {run.error !== null && <span className="code-failure code-line">{run.error}</span>}
          </li>
        ))}
      </ul>
    )}
  </Card>
)

const sample = `export const nightly = schedule('0 3 * * *', { tz: 'Europe/Berlin' }, async (ctx) => {
  ctx.log.info('cleaning up')
})`

const NoSchedules = () => (
  <EmptyState icon="code" title="No schedules yet">
    <p>A schedule runs once at each time, on whichever node has room:</p>
    <div className="code-sample">
      <CodeBlock code={sample} label="functions/index.ts" />
    </div>
  </EmptyState>
)
