/** The figures of the last minutes, the engines, and what an operator should look at. */
import { useQuery } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { Badge } from '../../design/badge.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card, Facts } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'

interface OverviewReply {
  readonly version: string
  readonly uptimeSeconds: number
  /** What is wrong with each engine; null for nothing. */
  readonly engines: Readonly<Record<string, string | null>>
  readonly requests: {
    readonly windowSeconds: number
    readonly inFlight: number
    readonly requests: number
    readonly errors: number
    readonly p50: number | null
    readonly p95: number | null
  }
  readonly advice: readonly { readonly kind: string; readonly message: string }[]
}

const refreshMs = 5_000

const engineNames: Readonly<Record<string, string>> = { sql: 'Database', blobs: 'Files', cluster: 'Cluster' }

function formatDuration(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${seconds} s`
}

const formatMs = (ms: number | null): string => (ms === null ? '–' : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`)

export function Overview() {
  const { data, error, refetch } = useQuery({
    queryKey: ['overview'],
    refetchInterval: refreshMs,
    queryFn: ({ signal }) => api.get<OverviewReply>('/api/overview', { signal }),
  })
  if (data === undefined)
    return error === null ? <Skeleton /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  const { requests } = data
  const minutes = Math.round(requests.windowSeconds / 60)
  const figures: readonly (readonly [name: string, value: string, isBad?: boolean])[] = [
    [`Requests in ${minutes} min`, requests.requests.toLocaleString('en')],
    ['Errors', requests.errors.toLocaleString('en'), requests.errors > 0],
    ['Median', formatMs(requests.p50)],
    ['95th percentile', formatMs(requests.p95)],
    ['In flight', requests.inFlight.toLocaleString('en')],
    ['Uptime', formatDuration(data.uptimeSeconds)],
  ]
  return (
    <>
      <dl className="home-figures">
        {figures.map(([name, value, isBad]) => (
          <div key={name} className="home-figure">
            <dt>{name}</dt>
            <dd className={isBad ? 'is-bad' : undefined}>{value}</dd>
          </div>
        ))}
      </dl>
      <div className="home-grid">
        <Card title="Engines">
          <Facts
            facts={[
              ...Object.entries(data.engines).map(
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
              ['Version', data.version],
            ]}
          />
        </Card>
        <Card title="Advice">
          {data.advice.length === 0 ? (
            <p className="home-fine">
              <Icon name="check" /> Nothing to do.
            </p>
          ) : (
            <ul className="home-advice">
              {data.advice.map(({ kind, message }) => (
                <li key={kind}>
                  <Icon name="info" />
                  {message}
                </li>
              ))}
            </ul>
          )}
        </Card>
      </div>
    </>
  )
}
