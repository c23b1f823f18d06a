/** One request explained: where its time went, why the rules decided as they did, and the same request as a command. */
import { Link, useParams } from 'wouter'
import { usePermits } from '../../../app/permissions.ts'
import { Badge } from '../../../design/badge.tsx'
import { CodeBlock } from '../../../design/code-block.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { formatBytes, formatDuration } from '../../../design/format/number.ts'
import { formatDevice, formatTime } from '../../../design/format-time.ts'
import { Card, Facts, Page } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { toneOf } from '../status-tone.ts'
import { AccessCard } from './access-card.tsx'
import { commandOf, logsPath, requestsPath } from './links.ts'
import { type ExplainedRequest, type Span, useRequest } from './requests.ts'
import { Waterfall } from './waterfall.tsx'

const back = (
  <Link className="button button-plain button-small" href={requestsPath()}>
    All requests
  </Link>
)

export function RequestPage() {
  const { requestId = '' } = useParams<{ requestId: string }>()
  const { data, error, refetch } = useRequest(requestId)
  if (data === undefined)
    return (
      <Page title="Request" description={<code>{requestId}</code>} actions={back}>
        {error === null ? <Skeleton lines={10} /> : <ErrorNote error={error} onRetry={() => void refetch()} />}
      </Page>
    )
  return <Explained request={data} />
}

function Explained({ request }: { readonly request: ExplainedRequest }) {
  const { method, path, trace, ms } = request
  return (
    <Page
      title={
        <code className="request-title">
          {method} {path}
        </code>
      }
      description={
        <>
          {formatTime(request.at)} · <code>{request.endpoint}</code> · node {request.node.host}{' '}
          <code>{request.node.id.slice(0, 8)}</code>
        </>
      }
      actions={<Actions request={request} />}
    >
      <div className="stack">
        <Summary request={request} />
        {request.slug !== null && (
          <p className="request-refusal">
            <code>{request.slug}</code> {request.message}
          </p>
        )}
        <Card title="Path">{trace === null ? <NotSampled /> : <Waterfall trace={trace} totalMs={ms} />}</Card>
        <div className="request-columns">
          <AccessCard request={request} />
          <Card title="Request">
            <Details request={request} />
          </Card>
        </div>
      </div>
    </Page>
  )
}

const NotSampled = () => (
  <EmptyState icon="insights" title="This request was not sampled">
    Statements and stages are kept of every request in development mode and while the list of requests follows,
    otherwise of one in 64, and of 20 after a slow or a failed one of the same endpoint. Open the list, then send the
    request again.
  </EmptyState>
)

function Actions({ request }: { readonly request: ExplainedRequest }) {
  const mayReadLogs = usePermits()('system:logs:*:read')
  return (
    <>
      {mayReadLogs && (
        <Link className="button button-plain button-small" href={logsPath(request.requestId)}>
          Log lines
        </Link>
      )}
      {back}
    </>
  )
}

/** The time in which at least one of the spans ran: a function waits for the hooks of what it writes. */
function coveredMs(spans: readonly Span[]): number {
  let [total, endMs] = [0, 0]
  for (const { startMs, ms } of spans.toSorted((one, other) => one.startMs - other.startMs)) {
    total += Math.max(0, startMs + ms - Math.max(startMs, endMs))
    endMs = Math.max(endMs, startMs + ms)
  }
  return total
}

function Summary({ request: { status, ms, trace } }: { readonly request: ExplainedRequest }) {
  const statements = trace?.spans.filter(({ kind }) => kind === 'statement') ?? []
  const waits = trace?.spans.filter(({ kind }) => kind === 'queue' || kind === 'commit' || kind === 'lock') ?? []
  const functions = trace?.spans.filter(({ kind }) => kind === 'function') ?? []
  return (
    <dl className="insights-figures">
      <div>
        <dt>Status</dt>
        <dd>
          <Badge tone={toneOf(status)}>{status}</Badge>
        </dd>
      </div>
      <div>
        <dt>Duration</dt>
        <dd>{formatDuration(ms)}</dd>
      </div>
      {trace !== null && (
        <>
          <div>
            <dt>{statements.length === 1 ? '1 statement' : `${statements.length} statements`}</dt>
            <dd>{formatDuration(coveredMs(statements))}</dd>
          </div>
          {waits.length > 0 && (
            <div>
              <dt>Waits and commit</dt>
              <dd>{formatDuration(coveredMs(waits))}</dd>
            </div>
          )}
          {functions.length > 0 && (
            <div>
              <dt>{functions.length === 1 ? '1 function' : `${functions.length} functions`}</dt>
              <dd>{formatDuration(coveredMs(functions))}</dd>
            </div>
          )}
          <div>
            <dt>Received, sent</dt>
            <dd>
              {trace.requestBytes === null ? 'stream' : formatBytes(trace.requestBytes)},{' '}
              {trace.responseBytes === null ? 'stream' : formatBytes(trace.responseBytes)}
            </dd>
          </div>
        </>
      )}
    </dl>
  )
}

function Details({ request }: { readonly request: ExplainedRequest }) {
  const { requestId, query, caller, address, endpoint, trace } = request
  return (
    <div className="stack">
      <Facts
        facts={[
          [
            'Caller',
            <Link key="caller" className="insights-wrapped" href={requestsPath({ caller })}>
              {caller}
            </Link>,
          ],
          [
            'Endpoint',
            <Link key="endpoint" href={requestsPath({ endpoint })}>
              {endpoint}
            </Link>,
          ],
          ['Address', address],
          ...(query === ''
            ? []
            : ([
                [
                  'Parameters',
                  <code key="query" className="insights-wrapped">
                    {query}
                  </code>,
                ],
              ] as const)),
          ...(trace?.userAgent
            ? ([
                [
                  'Client',
                  <span key="agent" className="insights-wrapped" title={trace.userAgent}>
                    {formatDevice(trace.userAgent)}
                  </span>,
                ],
              ] as const)
            : []),
          ['Request', <code key="id">{requestId}</code>],
        ]}
      />
      {trace?.body != null && <CodeBlock label="Body, without secrets and hidden fields" code={trace.body} />}
      <CodeBlock label="Replay" code={commandOf(request, trace?.body ?? null)} />
    </div>
  )
}
