/** Requests over time, and the endpoints that receive most of them. */
import { useUrlState } from '../../app/url-state.ts'
import { BarChart } from '../../design/chart/bar-chart.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, type Fact, Facts, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { barsOf, formatTimeOf, RangeSelect, rangeOf } from './range.tsx'
import { type Traffic, useTraffic } from './requests.ts'

type Endpoint = Traffic['topItems'][number]

const formatMs = (ms: number): string => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
const formatShare = (share: number): string => `${(share * 100).toFixed(share > 0 && share < 0.01 ? 2 : 1)} %`

const columns: readonly Column<Endpoint>[] = [
  { id: 'endpoint', title: 'Endpoint', cell: ({ label }) => <code>{label}</code> },
  { id: 'count', title: 'Requests', isNumeric: true, cell: ({ count }) => count.toLocaleString('en') },
  { id: 'latency', title: 'Average', isNumeric: true, cell: ({ avgLatency }) => formatMs(avgLatency) },
  { id: 'errors', title: 'Errors', isNumeric: true, isOptional: true, cell: ({ errorRate }) => formatShare(errorRate) },
]

export function TrafficView() {
  const url = useUrlState()
  const range = rangeOf(url)
  const { data, error, refetch } = useTraffic(range)
  return (
    <>
      <Toolbar label="Range">
        <RangeSelect url={url} />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && (
        <div className="stack">
          <Summary summary={data.summary} />
          <Card title="Requests">
            <BarChart
              label="Requests over time"
              markedLabel="errors"
              bars={barsOf(
                range,
                data.timeSeries.map(({ timestamp, requests, errors }) => ({
                  atMs: Date.parse(timestamp),
                  count: requests,
                  marked: errors,
                })),
              )}
              formatTime={formatTimeOf(range)}
            />
          </Card>
          <Card title="Endpoints" isFlush={data.topItems.length > 0}>
            {data.topItems.length === 0 ? (
              <EmptyState icon="insights" title="No requests in this range">
                Every request to the API is counted here, by endpoint, with its latency and errors.
              </EmptyState>
            ) : (
              <Table label="Endpoints" rows={data.topItems} columns={columns} keyOf={({ label }) => label} />
            )}
          </Card>
        </div>
      )}
    </>
  )
}

function Summary({ summary }: { readonly summary: Traffic['summary'] }) {
  const { totalRequests, totalErrors, avgLatency, uniqueUsers } = summary
  const figures: readonly Fact[] = [
    ['Requests', totalRequests.toLocaleString('en')],
    [
      'Errors',
      totalRequests === 0 ? '0' : `${totalErrors.toLocaleString('en')} (${formatShare(totalErrors / totalRequests)})`,
    ],
    ['Average', formatMs(avgLatency)],
    ['Signed-in users', uniqueUsers.toLocaleString('en')],
  ]
  return <Facts facts={figures} className="insights-figures" />
}
