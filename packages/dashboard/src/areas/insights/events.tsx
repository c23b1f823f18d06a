/** The events that the application tracks. */
import { useUrlState } from '../../app/url-state.ts'
import { BarChart } from '../../design/chart/bar-chart.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table } from '../../design/table.tsx'
import { barsOf, formatTimeOf, RangeSelect, rangeOf } from './range.tsx'
import { useEventSeries, useTopEvents } from './requests.ts'

const sample = `await fetch('/api/analytics/track', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ events: [{ name: 'checkout', properties: { total: 42 } }] }),
})`

export function Events() {
  const url = useUrlState()
  const range = rangeOf(url)
  const series = useEventSeries(range)
  const top = useTopEvents(range)
  const error = series.error ?? top.error
  const retry = (): void => {
    void series.refetch()
    void top.refetch()
  }
  return (
    <>
      <Toolbar label="Range">
        <RangeSelect url={url} />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={retry} />}
      {top.data === undefined && error === null && <Skeleton lines={8} />}
      {top.data?.topEvents.length === 0 && (
        <EmptyState icon="insights" title="No events in this range">
          <p>Track what users do, and see here how often and by how many:</p>
          <CodeBlock code={sample} />
        </EmptyState>
      )}
      {top.data !== undefined && top.data.topEvents.length > 0 && (
        <div className="stack">
          <Card title="Events">
            <BarChart
              label="Events over time"
              bars={barsOf(
                range,
                (series.data?.timeSeries ?? []).map(({ timestamp, count }) => ({ atMs: Date.parse(timestamp), count })),
              )}
              formatTime={formatTimeOf(range)}
            />
          </Card>
          <Card title="By name" isFlush>
            <Table
              label="Events by name"
              rows={top.data.topEvents}
              keyOf={({ eventName }) => eventName}
              columns={[
                { id: 'name', title: 'Event', cell: ({ eventName }) => eventName },
                { id: 'count', title: 'Count', isNumeric: true, cell: ({ count }) => count.toLocaleString('en') },
                {
                  id: 'users',
                  title: 'Users',
                  isNumeric: true,
                  cell: ({ uniqueUsers }) => uniqueUsers.toLocaleString('en'),
                },
              ]}
            />
          </Card>
        </div>
      )}
    </>
  )
}
