/** `plinth rules attack`: tries what the rules of the project should refuse, on a server of its own. */
import { createRuleEvaluator } from '../../../access/rule-evaluator.ts'
import { outlineTables } from '../../../features/records/rules/matrix/matrix.ts'
import type { Call, Terminal } from '../../command.ts'
import { attackRecords, treesOf } from './attack-records.ts'
import { attackResources } from './attack-resources.ts'
import { attackRunning } from './attack-running.ts'
import { openAttackServer } from './attack-server.ts'
import { claimNames, createCallers } from './attempts.ts'
import { type Finding, Findings, type IsAllowed, nameOf, parseAllowed, sentenceOf } from './findings.ts'
import { marksIn } from './marked-fields.ts'

async function attackProject(configPath: string | undefined): Promise<Findings> {
  const server = await openAttackServer(configPath)
  try {
    const { config, url } = server
    const namespaces = () => config.namespaces
    // Trees are read, never evaluated on a database.
    const sql = {
      database: () => {
        throw new Error('The outline of a rule reads no database')
      },
    }
    const ruleEvaluator = createRuleEvaluator({ sql, namespaces })
    const tables = await outlineTables({ namespaces, buckets: () => config.buckets, ruleEvaluator })
    const { claims: marks } = marksIn(tables.flatMap(treesOf))
    const read = tables.flatMap(({ outlines, entry }) =>
      [...Object.values(outlines), ...(entry ? [entry] : [])].flatMap(({ reads }) => reads),
    )
    const names = new Set(read.flatMap((name) => (name.startsWith('custom.') ? [name.slice('custom.'.length)] : [])))
    const claims = claimNames(marks, names)
    // A claim that decides about an instance is in no tree.
    for (const { entry } of tables)
      for (const name of entry?.reads ?? [])
        if (name.startsWith('custom.') && !claims.has(name.slice(7))) claims.set(name.slice(7), false)
    const callers = createCallers(server, claims)
    const findings = new Findings()
    if (server.functionsFailure !== null)
      findings.note(`functions, which do not load and so check no write: ${server.functionsFailure}`)
    await attackRecords(tables, callers, findings)
    const buckets = tables.filter(({ namespace }) => namespace === null)
    await attackResources({ url, config, buckets }, callers, findings)
    return findings
  } finally {
    await server.close()
  }
}

function print(open: readonly Finding[], allowed: number, notes: readonly string[], terminal: Terminal): void {
  for (const finding of open) {
    terminal.out(`${finding.severity.padEnd(8)}  ${nameOf(finding)}`)
    terminal.out(`          ${sentenceOf(finding)}`)
    terminal.out(`          ${finding.rule}`)
  }
  for (const note of notes) terminal.out(`not tried ${note}`)
  const intended = allowed === 0 ? '' : `, ${allowed} allowed`
  terminal.out(`${open.length === 0 ? 'nothing' : open.length} open${intended}`)
}

/** The exit code is 1 if something is open that `--allow` does not name. */
export async function attackRules({ options, terminal }: Call): Promise<number> {
  const isAllowed: IsAllowed = options.allow === undefined ? () => false : parseAllowed(options.allow)
  const findings = options.url === undefined ? await attackProject(options.config) : await attackRunning(options)
  const found = findings.list()
  const open = found.filter((finding) => !isAllowed(finding))
  if (options.json !== undefined)
    terminal.out(
      JSON.stringify(
        {
          findings: found.map((one) => ({ name: nameOf(one), ...one, allowed: isAllowed(one) })),
          notes: findings.notes,
        },
        null,
        2,
      ),
    )
  else print(open, found.length - open.length, findings.notes, terminal)
  return open.length === 0 ? 0 : 1
}
