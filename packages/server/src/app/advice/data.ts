/** Advice on what the application declares: its rules, its indexes, and what is slow in it. */
import type { MatrixTable } from '../../features/records/rules/matrix/matrix.ts'
import type { Advice } from '../../features/system/advice.ts'
import { formatDays } from './days.ts'
import type { AdviceSources } from './sources.ts'

const quoted = (fields: readonly string[]): string => fields.map((field) => `'${field}'`).join(', ')
const list = (names: readonly string[]): string => names.join(', ')

const writes = ['create', 'update', 'delete'] as const

const nameOf = ({ kind, namespace, name }: MatrixTable): string =>
  kind === 'bucket' ? `bucket ${name}` : `${namespace}.${name}`

export async function adviseOnRules({ records }: AdviceSources): Promise<readonly Advice[]> {
  return (await records.matrix()).flatMap((table) => {
    const where = nameOf(table)
    const open = writes.filter((operation) => table.operations[operation].anonymous.access === 'always')
    const link = `/rules/matrix?search=${encodeURIComponent(table.name)}`
    const advice: Advice[] = []
    if (open.length > 0)
      advice.push({
        id: `open-write:${where}`,
        severity: 'high',
        title: `Anyone can ${list(open)} records`,
        where,
        why: 'The rule is true for callers without credentials, so that a script can fill, change or empty it.',
        fix: 'Require a signed-in caller, and bind records to their author.',
        code: open
          .map(
            (operation) => `${operation === 'create' ? 'insert' : operation}: (auth) => auth && { userId: auth.id },`,
          )
          .join('\n'),
        link,
      })
    else if (table.operations.read.anonymous.access === 'always')
      advice.push({
        id: `open-read:${where}`,
        severity: 'low',
        title: 'Anyone can read all records',
        where,
        why: 'The rule for reading is true for callers without credentials. That is right for public data only.',
        fix: 'If it is not public, require a signed-in caller or a condition.',
        code: 'read: (auth) => auth !== null,',
        link,
      })
    const kinds = Object.values(table.operations).flatMap((cells) => Object.values(cells))
    if (table.failures.length === 0 && kinds.every(({ access }) => access === 'never'))
      advice.push({
        id: `no-rules:${where}`,
        severity: 'low',
        title: 'No rule permits anything',
        where,
        why: 'Only service keys and functions reach its records. That is right for internal data only.',
        fix: 'If users should reach them, give the table rules.',
        code: 'access: {\n  read: (auth) => auth && { userId: auth.id },\n},',
        link,
      })
    for (const failure of table.failures.slice(0, 1))
      advice.push({
        id: `failing-rule:${where}`,
        severity: 'medium',
        title: 'A rule fails for a sample caller',
        where,
        why: `A rule that throws denies: ${failure}`,
        fix: 'Read claims that a caller may lack with ?. and a default.',
        code: null,
        link,
      })
    return advice
  })
}

export async function adviseOnIndexes({ records }: AdviceSources): Promise<readonly Advice[]> {
  const missing = (await records.missingIndexes()).map(
    ({ namespace, table, fields, count, sorts }): Advice => ({
      id: `missing-index:${namespace}.${table}:${fields.join(',')}`,
      severity: 'medium',
      title: `Lists would use an index on ${list(fields)}`,
      where: `${namespace}.${table}`,
      why: `${count} sampled ${count === 1 ? 'list' : 'lists'} ${sorts ? 'sorted' : 'read'} all rows of the table, which takes longer with each row.`,
      fix: 'Add the index to the table; it is built when the configuration is loaded.',
      code: `indexes: [{ fields: [${quoted(fields)}] }],`,
      link: `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`,
    }),
  )
  const redundant = records.redundantIndexes().map(
    ({ namespace, table, fields, coveredBy }): Advice => ({
      id: `redundant-index:${namespace}.${table}:${fields.join(',')}`,
      severity: 'low',
      title: `The index on ${list(fields)} is not needed`,
      where: `${namespace}.${table}`,
      why: `The index on ${list(coveredBy)} begins with the same fields and serves the same lists. Each write updates both.`,
      fix: 'Remove the shorter one from the table.',
      code: `// remove: { fields: [${quoted(fields)}] }`,
      link: `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`,
    }),
  )
  return [...missing, ...redundant, ...(await adviseOnUnused(records))]
}

/** A report that runs once a month is not seen in a week, so this is of low severity. */
const adviseOnUnused = async (records: AdviceSources['records']): Promise<readonly Advice[]> =>
  (await records.unusedIndexes()).map(({ namespace, table, fields, forMs }) => ({
    id: `unused-index:${namespace}.${table}:${fields.join(',')}`,
    severity: 'low',
    title: `Nothing uses the index on ${list(fields)}`,
    where: `${namespace}.${table}`,
    why: `No request of the last ${formatDays(forMs)} is known to have used it. Each write updates it.`,
    fix: 'Remove it from the table, unless something rare needs it.',
    code: `// remove: { fields: [${quoted(fields)}] }`,
    link: `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`,
  }))

export const adviseOnSpans = ({ dashboard }: AdviceSources): readonly Advice[] =>
  dashboard.slowSpans().map(({ kind, label, endpoint, count, averageMs, requestId }) => ({
    id: `slow-${kind}:${label.slice(0, 200)}`,
    severity: 'medium',
    title: kind === 'statement' ? 'A statement is slow' : `The function ${label} is slow`,
    where: endpoint,
    why: `On average ${Math.round(averageMs)} ms in ${count} traced ${count === 1 ? 'request' : 'requests'} of the last 2,000.`,
    fix:
      kind === 'statement'
        ? 'Open a request that ran it. A list is explained with its plan by explain=1 or in the rules playground.'
        : 'Open a request that called it. Move what the response does not need into a job.',
    code: kind === 'statement' ? label : null,
    link: `/insights/requests/${encodeURIComponent(requestId)}`,
  }))
