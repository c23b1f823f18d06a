/** Log lines of functions, newest first. */
import { Badge, type Tone } from '../../design/badge.tsx'
import { formatTime } from '../../design/format-time.ts'
import type { FunctionLine, LogLevel } from './requests.ts'

const tones: Readonly<Record<LogLevel, Tone>> = { debug: 'neutral', info: 'neutral', warn: 'warn', error: 'bad' }

/** Lines have no id: equal ones at one time differ by their number among these. */
function withKeys(lines: readonly FunctionLine[]): (readonly [key: string, line: FunctionLine])[] {
  const seen = new Map<string, number>()
  return lines.map((line) => {
    const base = `${line.at} ${line.requestId} ${line.message}`
    const count = (seen.get(base) ?? 0) + 1
    seen.set(base, count)
    return [`${base} ${count}`, line]
  })
}

export interface LineListProps {
  readonly lines: readonly FunctionLine[]
  /** Keeps only the lines of one call, where that is a choice. */
  readonly onRequest?: (requestId: string) => void
}

export const LineList = ({ lines, onRequest }: LineListProps) => (
  <ol className="code-lines">
    {withKeys(lines)
      .reverse()
      .map(([key, { at, level, function: name, message, data, requestId, location }]) => (
        <li key={key}>
          <time dateTime={at} title={formatTime(at)}>
            {new Date(at).toLocaleTimeString('en-GB')}
          </time>
          <Badge tone={tones[level]}>{level}</Badge>
          <strong>{name}</strong>
          <span className="code-message">{message}</span>
          {location !== null && <code className="code-quiet">{location}</code>}
          {onRequest && (
            <button type="button" className="code-request" onClick={() => onRequest(requestId)}>
              Only this call
            </button>
          )}
          {data !== null && <code className="code-data">{JSON.stringify(data)}</code>}
        </li>
      ))}
  </ol>
)
