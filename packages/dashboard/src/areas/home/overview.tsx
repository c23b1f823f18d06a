/** The figures of the last minutes, the requests of the last hour, and the engines. */
import type { ReactNode } from 'react'
import { usePermits } from '../../app/permissions.ts'
import { Badge } from '../../design/badge.tsx'
import { BarChart } from '../../design/chart/bar-chart.tsx'
import { withoutGaps } from '../../design/chart/intervals.ts'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card, Facts } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Overview as OverviewReply, useLastHour, useOverview } from './requests.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const engineNames: Readonly<Record<string, string>> = { sql: 'Database', blobs: 'Files', cluster: 'Cluster' }

function formatUptime(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${seconds} s`
}

const formatMs = (ms: number | null): string => (ms === null ? '–' : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`)

/** `children` are shown below the figures. */
export function Overview({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch } = useOverview()
  if (data === undefined)
    return (
      <>
        {error === null ? <Skeleton /> : <ErrorNote error={error} onRetry={() => void refetch()} />}
        {children}
      </>
    )
  return (
    <>
      <Figures overview={data} />
      {children}
      <div className="home-grid">
        <LastHour />
        <Engines overview={data} />
      </div>
    </>
  )
}

function Figures({ overview: { requests, uptimeSeconds } }: { readonly overview: OverviewReply }) {
  const minutes = Math.round(requests.windowSeconds / 60)
  const figures: readonly (readonly [name: string, value: string, isBad?: boolean])[] = [
    [`Requests in ${minutes} min`, requests.requests.toLocaleString('en')],
    ['Errors', requests.errors.toLocaleString('en'), requests.errors > 0],
    ['Median', formatMs(requests.p50)],
    ['95th percentile', formatMs(requests.p95)],
    ['In flight', requests.inFlight.toLocaleString('en')],
    ['Uptime', formatUptime(uptimeSeconds)],
  ]
  return (
    <dl className="home-figures">
      {figures.map(([name, value, isBad]) => (
        <div key={name} className="home-figure">
          <dt>{name}</dt>
          <dd className={isBad ? 'is-bad' : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function LastHour() {
  const mayRead = usePermits()('analytics:*:*:read')
  const { data, error, refetch } = useLastHour(mayRead)
  if (!mayRead) return null
  return (
    <Card title="Requests of the last hour">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={5} />}
      {data !== undefined && (
        <BarChart
          label="Requests of the last hour by minute"
          markedLabel="errors"
          bars={withoutGaps(
            data.timeSeries.map(({ timestamp, requests, errors }) => ({
              atMs: Date.parse(timestamp),
              count: requests,
              marked: errors,
            })),
            hourMs,
            minuteMs,
            Date.now(),
          )}
          formatTime={(atMs) => new Date(atMs).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}
        />
      )}
    </Card>
  )
}

const Engines = ({ overview: { engines, version } }: { readonly overview: OverviewReply }) => (
  <Card title="Engines">
    <Facts
      facts={[
        ...Object.entries(engines).map(
          ([name, fault]) =>
            [
              engineNames[name] ?? name,
              fault === null ? (
                <Badge tone="good" hasDot>
                  Healthy
                </Badge>
              ) : (
                <span className="home-fault">{fault}</span>
              ),
            ] as const,
        ),
        ['Version', version],
      ]}
    />
  </Card>
)
