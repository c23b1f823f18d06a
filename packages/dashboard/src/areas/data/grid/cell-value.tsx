/** A value in a cell or a line: one line of text, by type. Values are text nodes, whatever they contain. */
import type { ReactNode } from 'react'
import type { FieldDescription } from '../../../app/queries.ts'
import { Icon } from '../../../design/icons.tsx'

export interface CellValueProps {
  readonly value: unknown
  readonly field: FieldDescription | null
  /** Whether `value` is the beginning only. */
  readonly isCut?: boolean
}

/** Characters that a cell draws; more would only cost time to lay out. */
const drawnCharsMax = 200

const oneLine = (text: string): string => text.slice(0, drawnCharsMax).replace(/\s*[\r\n\t]+\s*/g, ' ↵ ')

const pad = (value: number): string => String(value).padStart(2, '0')

/** In the time zone of the browser, to the second. The text itself where it is no time. */
export function formatTime(text: string): string {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) return text
  const date = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`
  return `${date} ${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`
}

const isPoint = (value: unknown): value is readonly [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'number')

const text = (content: string): ReactNode => (
  <span className="data-text" dir="auto">
    {oneLine(content)}
  </span>
)

export function CellValue({ value, field, isCut = false }: CellValueProps): ReactNode {
  if (value === null || value === undefined) return <span className="data-null">{value === null ? 'null' : ''}</span>
  if (value === '') return <span className="data-null">empty text</span>
  if (typeof value === 'boolean')
    return (
      <span className={value ? 'data-boolean is-true' : 'data-boolean'}>
        <Icon name={value ? 'check' : 'close'} size={12} />
        {String(value)}
      </span>
    )
  if (typeof value === 'number') return <span className="data-number">{String(value)}</span>
  if (isPoint(value) && (field === null || field.type === 'geo'))
    return <span className="data-number">{`${value[1]}, ${value[0]}`}</span>
  if (typeof value !== 'string') return <span className="data-json">{oneLine(JSON.stringify(value))}</span>
  if (field?.type === 'json') return <span className="data-json">{oneLine(isCut ? value : JSON.stringify(value))}</span>
  if (field?.type === 'datetime')
    return (
      <time className="data-number" dateTime={value}>
        {formatTime(value)}
      </time>
    )
  if (field?.enum) return <span className="data-enum">{oneLine(value)}</span>
  return text(value)
}
