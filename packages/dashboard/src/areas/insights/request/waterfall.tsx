/** Where the time of a request went: a bar for each stage, and below it one for each statement, wait and function. */
import { classNames } from '../../../design/class-names.ts'
import { CodeBlock } from '../../../design/code-block.tsx'
import { formatDuration } from '../../../design/format/number.ts'
import { Icon } from '../../../design/icons.tsx'
import { ColorLegend } from '../color-legend.tsx'
import type { Span, SpanKind, Stage, Trace } from './requests.ts'

const stageTitles: Readonly<Record<Stage['stage'], string>> = {
  authenticate: 'Credentials and rate limit',
  validate: 'Query and body',
  handle: 'Endpoint',
  respond: 'Response',
}

const kindTitles: Readonly<Record<SpanKind, string>> = {
  statement: 'Statement',
  queue: 'Wait for the writer',
  commit: 'Commit',
  lock: 'Wait for a lock',
  function: 'Function',
}

/** Units of the drawing. */
const width = 1000
const height = 10
/** So that the shortest is visible. */
const barMin = 3

interface BarProps {
  readonly kind: SpanKind | 'stage'
  readonly startMs: number
  readonly ms: number
  readonly waitMs?: number | null
  readonly totalMs: number
}

const Bar = ({ kind, startMs, ms, waitMs = null, totalMs }: BarProps) => {
  const share = (part: number): number => (totalMs <= 0 ? 0 : (part / totalMs) * width)
  const length = Math.max(barMin, share(ms))
  const start = Math.min(share(startMs), width - length)
  return (
    <svg
      className="waterfall-bar"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <rect className="waterfall-track" width={width} height={height} />
      <rect className={`is-${kind}`} x={start} width={length} height={height} />
      {waitMs !== null && <rect className="is-queue" x={start} width={share(waitMs)} height={height} />}
    </svg>
  )
}

/** The spans that began in a stage. */
const spansOf = (spans: readonly Span[], { startMs, ms }: Stage, isLast: boolean): readonly Span[] =>
  spans.filter((span) => span.startMs >= startMs && (isLast || span.startMs < startMs + ms))

export function Waterfall({ trace, totalMs }: { readonly trace: Trace; readonly totalMs: number }) {
  const { stages, spans, dropped } = trace
  const ordered = spans.toSorted((one, other) => one.startMs - other.startMs)
  const end = Math.max(totalMs, ...stages.map(({ startMs, ms }) => startMs + ms))
  return (
    <div className="waterfall">
      <ol>
        {stages.map((stage, at) => (
          <li key={stage.stage}>
            <div className="waterfall-row is-stage">
              <span className="waterfall-label">{stageTitles[stage.stage]}</span>
              <Bar kind="stage" {...stage} totalMs={end} />
              <span className="waterfall-ms">{formatDuration(stage.ms)}</span>
              <span className="waterfall-rows" />
            </div>
            <Spans spans={spansOf(ordered, stage, at === stages.length - 1)} totalMs={end} />
          </li>
        ))}
      </ol>
      {dropped > 0 && <p className="insights-note">{dropped} more are not kept.</p>}
      <ColorLegend
        kinds={[...new Set(spans.map(({ kind }) => kind))]}
        titles={kindTitles}
        className="waterfall-legend"
      />
    </div>
  )
}

function Spans({ spans, totalMs }: { readonly spans: readonly Span[]; readonly totalMs: number }) {
  if (spans.length === 0) return null
  return (
    <ol className="waterfall-spans">
      {spans.map((span, at) => (
        // Spans may be equal, and keep their order.
        <li key={`${at} ${span.startMs}`}>
          <SpanRow span={span} totalMs={totalMs} />
        </li>
      ))}
    </ol>
  )
}

function SpanRow({ span, totalMs }: { readonly span: Span; readonly totalMs: number }) {
  const { kind, label, ms, rows, waitMs, isFailed } = span
  const cells = (
    <>
      <span className="waterfall-label">
        {kind === 'statement' || kind === 'function' ? (
          <>
            <span className="visually-hidden">{kindTitles[kind]} </span>
            <code>{label}</code>
            {waitMs !== null && <span className="waterfall-wait"> waited {formatDuration(waitMs)} for a host</span>}
          </>
        ) : (
          kindTitles[kind]
        )}
      </span>
      <Bar {...span} totalMs={totalMs} />
      <span className="waterfall-ms">
        {isFailed && <Icon name="alert" size={12} label="failed" />}
        {formatDuration(ms)}
      </span>
      <span className="waterfall-rows">
        {rows === null ? '' : `${rows.toLocaleString('en')} row${rows === 1 ? '' : 's'}`}
      </span>
    </>
  )
  if (kind !== 'statement') return <div className={classNames('waterfall-row', isFailed && 'is-bad')}>{cells}</div>
  return (
    <details>
      <summary className={classNames('waterfall-row', isFailed && 'is-bad')}>{cells}</summary>
      <CodeBlock label="The statement; a ? stands for each value" code={label} />
    </details>
  )
}
