/** Endpoints of the audit log: search, export as NDJSON, verification. `reader` reads. */

import { callerKey } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { findDatetime } from '../../../base/text/datetime.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { invalidField } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, limitParam, textParam } from '../../../http/input/query-schema.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import { bytes, json } from '../../../http/replies/reply.ts'
import { auditExportedAtOnce, auditListLimitDefault, auditListLimitMax } from '../../../limits/dashboard.ts'
import type { AuditFilter, AuditReader } from './reader.ts'

const item = z.object({
  id: z.string(),
  at: z.iso.datetime(),
  actor: z.string(),
  actorName: z.string().nullable(),
  via: z.enum(['dashboard', 'service-key']),
  ip: z.string(),
  action: z.string(),
  target: z.string(),
  outcome: z.enum(['done', 'failed', 'unknown']),
  requestId: z.string(),
  before: z.unknown(),
  after: z.unknown(),
  hash: z.string(),
})

const filterParams = {
  actor: textParam('Only entries of this key, or of `admin:` and the id of a user'),
  action: textParam('Only actions whose name begins so, such as `records.`'),
  target: textParam('Only entries whose path begins so, such as `/api/db/shared/tables/posts`'),
  from: textParam('Only entries from this time on'),
  to: textParam('Only entries before this time'),
}
const listQuery = z.object({
  ...filterParams,
  limit: limitParam({ default: auditListLimitDefault, max: auditListLimitMax }),
  cursor: cursorParam(),
})
const exportQuery = z.object(filterParams)
const verifyQuery = z.object({ hash: textParam('A hash that was noted earlier, which must be in the chain') })
const verification = z.object({
  ok: z.boolean(),
  entries: z.number(),
  removed: z.number(),
  hash: z.string().nullable(),
  broken: z.object({ seq: z.number(), id: z.string(), reason: z.string() }).nullable(),
  contains: z.boolean().nullable(),
})

/** Throws 400 for a time that is none. */
function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const normal = findDatetime(text)
  if (normal === null) throw invalidField(name, 'type', 'must be a timestamp such as 2030-01-31T12:00:00Z')
  return Date.parse(normal)
}

/** Throws 400 for a text that no engine can compare, which no entry has. */
function textOf(name: string, text: string | undefined): string | undefined {
  if (text !== undefined && !isStorableText(text)) throw invalidField(name, 'type', 'must be text without NUL')
  return text
}

function filterOf({ actor, action, target, from, to }: z.output<typeof exportQuery>): AuditFilter {
  return {
    actor: textOf('actor', actor),
    action: textOf('action', action),
    target: textOf('target', target),
    fromMs: timeOf('from', from),
    toMs: timeOf('to', to),
  }
}

const common = { method: 'GET', tag: 'Audit', credentials: 'service', rateLimit: 'global', isSecret: true } as const

export interface AuditEndpointsDeps {
  readonly reader: AuditReader
  /** Seals cursors. */
  readonly secret: string
}

export function createAuditEndpoints({ reader, secret }: AuditEndpointsDeps): readonly Endpoint[] {
  const cursors = createListCursors<[seq: number]>(secret, 'audit')
  return [
    endpoint({
      ...common,
      name: 'audit.list',
      paths: ['/api/audit'],
      summary: 'List what administrators and service keys have changed',
      description: 'Newest first. `cursor` is null on the last page.',
      scope: () => 'dashboard:audit:*:read',
      query: listQuery,
      replies: {
        200: {
          description: 'A page of entries',
          schema: z.object({ items: z.array(item), cursor: z.string().nullable() }),
        },
      },
      async handle({ query, caller }) {
        const { limit, cursor, ...params } = query
        const list = [params.actor, params.action, params.target, params.from, params.to].map((text) => text ?? null)
        const [before] = cursor === undefined ? [null] : cursors.parse(list, cursor)
        const { items, lastSeq, hasMore } = await reader.list(filterOf(params), before, limit, callerKey(caller))
        return json({ items, cursor: hasMore ? cursors.format(list, [lastSeq]) : null })
      },
    }),
    endpoint({
      ...common,
      name: 'audit.export',
      paths: ['/api/audit/export'],
      summary: 'Export entries, oldest first, one JSON object per line',
      scope: () => 'dashboard:audit:*:export',
      requiresRecentSignIn: true,
      query: exportQuery,
      replies: { 200: { description: 'NDJSON' } },
      handle: (call) =>
        bytes({ kind: 'stream', stream: exported(reader, filterOf(call.query), call) }, 200, {
          'Content-Type': 'application/x-ndjson',
          'Content-Disposition': 'attachment; filename="audit.ndjson"',
        }),
    }),
    endpoint({
      ...common,
      name: 'audit.verify',
      paths: ['/api/audit/verify'],
      summary: 'Verify the chain of hashes',
      description: 'Recomputes the hash of every entry. Takes some seconds for a million entries.',
      scope: () => 'dashboard:audit:*:read',
      query: verifyQuery,
      answerSeconds: 255,
      replies: { 200: { description: 'The first entry that does not fit, if there is one', schema: verification } },
      handle: async ({ query: { hash = null } }) => json(await reader.verify(hash)),
    }),
  ]
}

/** The lines of an export, read as the client takes them. */
function exported(
  reader: AuditReader,
  filter: AuditFilter,
  { caller, signal }: Pick<Call, 'caller' | 'signal'>,
): ReadableStream<Uint8Array> {
  let after = 0
  return new ReadableStream({
    async pull(controller) {
      const { items, lastSeq, hasMore } = await reader.readAfter(filter, after, auditExportedAtOnce, callerKey(caller))
      after = lastSeq
      if (items.length > 0) controller.enqueue(Buffer.from(items.map((one) => `${JSON.stringify(one)}\n`).join('')))
      if (!hasMore || signal.aborted) controller.close()
    },
  })
}
