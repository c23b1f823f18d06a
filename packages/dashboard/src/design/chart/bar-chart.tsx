/** Counts over time as bars, with a part of each marked, such as failures. The same numbers are in a hidden table. */
import { useId, useState } from 'react'

export interface Bar {
  /** In milliseconds since 1970. */
  readonly atMs: number
  readonly count: number
  /** How many of the count are marked. */
  readonly marked?: number
}

export interface BarChartProps {
  readonly label: string
  /** In order of time, without gaps. */
  readonly bars: readonly Bar[]
  readonly formatTime: (atMs: number) => string
  /** What the marked part is, such as `errors`. */
  readonly markedLabel?: string
}

const width = 720
const height = 160
/** Between two bars, in units of the drawing. */
const gap = 1

/** Rows of the hidden table; a screen reader would not get through more. */
const rowsMax = 60

export function BarChart({ label, bars, formatTime, markedLabel }: BarChartProps) {
  const id = useId()
  const [focused, setFocused] = useState<number | null>(null)
  const most = Math.max(1, ...bars.map(({ count }) => count))
  const step = width / Math.max(1, bars.length)
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(1, (count / most) * height))
  const shown = focused === null ? undefined : bars[focused]
  return (
    <figure className="bar-chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-labelledby={id}>
        <title id={id}>{label}</title>
        {bars.map(({ atMs, count, marked = 0 }, at) => (
          <g key={atMs} onPointerEnter={() => setFocused(at)} onPointerLeave={() => setFocused(null)}>
            <rect className="bar-chart-hit" x={at * step} y={0} width={step} height={height} />
            <rect
              className="bar-chart-bar"
              x={at * step}
              y={height - heightOf(count)}
              width={Math.max(1, step - gap)}
              height={heightOf(count)}
            />
            <rect
              className="bar-chart-marked"
              x={at * step}
              y={height - heightOf(marked)}
              width={Math.max(1, step - gap)}
              height={heightOf(marked)}
            />
          </g>
        ))}
      </svg>
      <figcaption>
        {shown === undefined ? (
          <>
            <span>{bars[0] === undefined ? '' : formatTime(bars[0].atMs)}</span>
            <span>at most {most.toLocaleString('en')}</span>
            <span>now</span>
          </>
        ) : (
          <span>
            {formatTime(shown.atMs)}: <strong>{shown.count.toLocaleString('en')}</strong>
            {markedLabel !== undefined && `, ${(shown.marked ?? 0).toLocaleString('en')} ${markedLabel}`}
          </span>
        )}
      </figcaption>
      <table className="visually-hidden">
        <caption>{label}</caption>
        <tbody>
          {bars
            .filter(({ count }) => count > 0)
            .slice(-rowsMax)
            .map(({ atMs, count, marked = 0 }) => (
              <tr key={atMs}>
                <th scope="row">{formatTime(atMs)}</th>
                <td>{count}</td>
                {markedLabel !== undefined && (
                  <td>
                    {marked} {markedLabel}
                  </td>
                )}
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  )
}
