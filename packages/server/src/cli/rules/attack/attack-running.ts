/**
 * The attack on a running server: instead of requests that would write, it asks for explanations of them, so that
 * nothing changes. Against the records that the server has, as callers that nothing belongs to.
 */
import { ApiError } from '../../../errors.ts'
import { createAdminCall } from '../../admin-call.ts'
import { findRunningServer, type RunningServerOptions } from '../../running-server.ts'
import { type AttackerKind, Findings } from './findings.ts'

/** Records of each table that are tried. */
const recordsMax = 20

interface Table {
  readonly kind: string
  readonly namespace: string | null
  readonly name: string
}

interface Explained {
  readonly allowed: boolean
  readonly clauses: readonly { readonly path: string; readonly text: string }[]
}

type StoredRecord = Readonly<Record<string, unknown>>

/** The paths of whole rules, not of their parts. */
const roots: ReadonlySet<string> = new Set(['instance', 'read', 'insert', 'update.before', 'update.after', 'delete'])

const ruleOf = ({ clauses }: Explained): string =>
  clauses.flatMap(({ path, text }) => (roots.has(path) ? [`${path}: ${text}`] : [])).join('; ')

const callers: readonly (readonly [kind: AttackerKind, caller: object])[] = [
  ['anonymous', { kind: 'anonymous' }],
  ['otherTenant', { kind: 'claims', auth: { id: 'plinth-attack', email: 'plinth-attack@example.com' } }],
]

const operations = [
  ['get', 'read'],
  ['create', 'create'],
  ['update', 'update'],
  ['delete', 'delete'],
] as const

/** The body by which a caller would create the record again. */
function bodyOf({ id: _, createdAt: _1, updatedAt: _2, ...body }: StoredRecord): StoredRecord {
  return body
}

/** Throws `ApiError` where the server refuses the service key. */
export async function attackRunning(options: RunningServerOptions): Promise<Findings> {
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api', serviceKey, silent })
  const { tables } = await call<{ readonly tables: readonly Table[] }>('GET', '/rules/matrix')
  const findings = new Findings()
  for (const table of tables) {
    const target = table.namespace === null ? `bucket ${table.name}` : `${table.namespace}.${table.name}`
    const base = `/db/${table.namespace}/tables/${table.name}?limit=${recordsMax}`
    const page = table.namespace === null ? null : await listRecords(call, base)
    if (!page) findings.note(`${target}: on a running server only tables of static namespaces are tried`)
    else if (page.length === 0) findings.note(`${target}: it has no record`)
    for (const record of page ?? [])
      for (const [attacker, caller] of callers)
        for (const [asked, operation] of operations) {
          const subject = asked === 'create' ? { row: bodyOf(record) } : { id: record.id }
          const question = { namespace: table.namespace, table: table.name, operation: asked, caller, ...subject }
          const explained = await explain(call, question)
          if (!explained?.allowed) continue
          const rule = ruleOf(explained)
          findings.add({ target, operation, attacker, rule, only: null, isOwned: asked === 'create' })
        }
  }
  return findings
}

type AdminCall = ReturnType<typeof createAdminCall>

/** Null where the table is one of an instance. */
async function listRecords(call: AdminCall, path: string): Promise<readonly StoredRecord[] | null> {
  try {
    return (await call<{ readonly items: readonly StoredRecord[] }>('GET', path)).items
  } catch (error) {
    if (isStatus(error, 404)) return null
    throw error
  }
}

/** Null for a body that the server would refuse as invalid, such as one with hidden fields. */
async function explain(call: AdminCall, question: object): Promise<Explained | null> {
  try {
    return await call<Explained>('POST', '/rules/explain', question)
  } catch (error) {
    if (isStatus(error, 400)) return null
    throw error
  }
}

const isStatus = (error: unknown, status: number): boolean => error instanceof ApiError && error.status === status
