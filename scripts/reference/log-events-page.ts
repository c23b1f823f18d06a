/** The reference page of log events, as Markdown. */
import type { LogEventDefinition } from '../../src/log-event.ts'
import { logEvents } from '../../src/log-events.ts'

const opening = `# Log events

This page is generated from \`src/log-events.ts\` by \`node scripts/run.mjs scripts/log-events.ts\`.

\`plinth start\` writes each event as one line of JSON to standard output: \`time\` (UTC, ISO 8601), \`level\`, \`event\` and the fields of the event. \`plinth dev\` writes the same as text. \`--log-level\` sets the least severe level that is written: \`debug\`, \`info\` (the default), \`warn\` or \`error\`.

Names and fields are stable. Fields whose name contains \`secret\`, \`token\`, \`password\`, \`credential\`, \`cookie\`, \`authorization\` or a kind of key are replaced by \`[hidden]\`, at any depth. \`error\` contains the name, message, stack trace and causes of an error. Fields longer than 16 KiB are truncated.
`

const nameOf = (field: string): string =>
  field.endsWith('?') ? `\`${field.slice(0, -1)}\` (optional)` : `\`${field}\``

const row = ([event, { level, fields, meaning, action }]: readonly [string, LogEventDefinition]): string =>
  `| \`${event}\` | ${level} | ${fields.map(nameOf).join(', ')} | ${meaning} | ${action} |`

/** The page's text, with the events in alphabetical order. */
export function format(): string {
  const rows = Object.entries<LogEventDefinition>(logEvents)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(row)
  return [
    opening,
    '| Event | Level | Fields | Meaning | Action |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}
