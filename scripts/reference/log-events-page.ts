/** The reference page of log events, as Markdown. */
import type { LogEventDefinition } from '../../packages/server/src/log-events/log-event.ts'
import { logEvents } from '../../packages/server/src/log-events/log-events.ts'

const opening = `# Log events

This page is generated from \`packages/server/src/log-events/log-events.ts\` by \`node scripts/run.mjs scripts/log-events.ts\`.

\`plinth start\` writes each event as one line of JSON to standard output: \`time\` (UTC, ISO 8601), \`level\`, \`event\` and the fields of the event. \`plinth dev\` writes the same as text. \`--log-level\` sets the least severe level that is written: \`debug\`, \`info\` (the default), \`warn\` or \`error\`.

Names and fields are stable. Fields whose name contains \`secret\`, \`token\`, \`password\`, \`credential\`, \`cookie\`, \`authorization\` or a kind of key are replaced by \`[hidden]\`, at any depth. \`error\` contains the name, message, stack trace and causes of an error. Fields longer than 16 KiB are truncated.
`

const nameOf = (field: string): string =>
  field.endsWith('?') ? `\`${field.slice(0, -1)}\` (optional)` : `\`${field}\``

const cellsOf = ([event, { level, fields, meaning, action }]: readonly [string, LogEventDefinition]): string[] => [
  `\`${event}\``,
  level,
  fields.map(nameOf).join(', '),
  meaning,
  action,
]

/** Rows as a Markdown table with aligned columns, as the formatter wants it; the first row is the head. */
function formatTable(rows: readonly (readonly string[])[]): string[] {
  const [head = [], ...body] = rows
  const widths = head.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)]
}

/** The page's text, with the events in alphabetical order. */
export function format(): string {
  const rows = Object.entries<LogEventDefinition>(logEvents)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(cellsOf)
  return [opening, ...formatTable([['Event', 'Level', 'Fields', 'Meaning', 'Action'], ...rows]), ''].join('\n')
}
