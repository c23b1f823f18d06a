/** Tries files, rooms, functions, and what only service keys may reach: key-value stores, SQL databases, vectors. */
import type { Config } from '../../../config/config.ts'
import type { MatrixOperation, OutlinedTable } from '../../../features/records/rules/matrix/matrix.ts'
import { ruleText } from './attack-records.ts'
import { type Callers, type Send, victimId } from './attempts.ts'
import type { AttackerKind, Findings } from './findings.ts'

const formOf = (key: string): FormData => {
  const form = new FormData()
  form.append('key', key)
  form.append('file', new Blob(['attack'], { type: 'text/plain' }), 'attack.txt')
  return form
}

async function attackBucket(bucket: OutlinedTable, callers: Callers, findings: Findings): Promise<void> {
  const base = `/api/storage/${bucket.name}`
  const target = `bucket ${bucket.name}`
  const key = 'attack/victim.txt'
  const path = `${base}/${encodeURIComponent(key)}`
  /** As the victim where the rules permit it, so that the file is the victim's. */
  const store = async (): Promise<boolean> => {
    const own = await callers.victim('POST', `${base}/upload`, { form: formOf(key) })
    return own.isDone || (await callers.service('POST', `${base}/upload`, { form: formOf(key) })).isDone
  }
  if (!(await store())) return findings.note(`${target}: no file could be stored`)
  for (const [attacker, send] of callers.attackers) {
    const report = (operation: MatrixOperation): void =>
      findings.add({
        target,
        operation,
        attacker,
        rule: ruleText(bucket, operation, attacker),
        only: null,
        isOwned: false,
      })
    if ((await send('GET', path)).isDone) report('read')
    if ((await send('POST', `${base}/upload`, { form: formOf(`attack/${attacker}.txt`) })).isDone)
      if (attacker === 'anonymous')
        // A file belongs to its uploader, so this is no file in the name of another user.
        report('create')
    if ((await send('POST', `${base}/upload`, { form: formOf(key) })).isDone) {
      report('update')
      await store()
    }
    if ((await send('DELETE', path)).isDone) {
      report('delete')
      await store()
    }
  }
}

/** Resolves with whether the server lets the caller into the room. */
function joinsRoom(url: string, path: string, token: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path)
  socket.onopen = () => socket.send(JSON.stringify({ type: 'auth', token }))
  socket.onclose = () => resolve(false)
  socket.onmessage = ({ data }) => {
    const { type } = JSON.parse(String(data)) as { readonly type: string }
    if (type === 'auth_success') return socket.send(JSON.stringify({ type: 'join' }))
    if (type === 'sync' || type === 'resumed') resolve(true)
    if (/error|denied/.test(type)) resolve(false)
  }
  return promise.finally(() => socket.close())
}

async function attackRoom(name: string, url: string, callers: Callers, findings: Findings): Promise<void> {
  const query = `?namespace=${name}&id=${victimId}`
  const target = `room ${name}`
  for (const [attacker, send, token] of callers.attackers) {
    if ((await send('GET', `/api/room/summary${query}`)).isDone)
      findings.add({ target, operation: 'read', attacker, rule: 'metadata', only: null, isOwned: false })
    if (token !== null && (await joinsRoom(url, `/api/room${query}`, token)))
      findings.add({ target, operation: 'join', attacker, rule: 'join', only: null, isOwned: false })
  }
}

interface Sealed {
  readonly target: string
  readonly path: string
  readonly body: unknown
}

/** What no caller without a service key reaches, whatever the configuration says. */
const sealedIn = ({ kv, sql, vector }: Config): readonly Sealed[] => [
  ...[...kv.keys()].map((name) => ({ target: `kv ${name}`, path: `/api/kv/${name}`, body: { action: 'list' } })),
  ...[...sql.keys()].map((name) => ({ target: `sql ${name}`, path: `/api/sql/${name}`, body: { query: 'SELECT 1' } })),
  ...[...vector.keys()].map((name) => ({
    target: `vector ${name}`,
    path: `/api/vector/${name}`,
    body: { action: 'describe' },
  })),
]

/** The body is no JSON, so that a function that admits the caller is not run. */
const reaches = async (send: Send, path: string): Promise<boolean> =>
  ![401, 403, 404].includes((await send('POST', path, { raw: '{' })).status)

async function attackFunctions(callers: Callers, findings: Findings): Promise<void> {
  const { body } = await callers.service('GET', '/api/functions')
  const items = (body?.items ?? []) as readonly { readonly name: string; readonly kind: string }[]
  for (const { name, kind } of items) {
    if (kind === 'http') findings.note(`function ${name}: serves HTTP and decides itself, so it is not tried`)
    if (kind !== 'rpc') continue
    for (const [attacker, send] of callers.attackers)
      if (await reaches(send, `/api/fn/${name}`))
        findings.add({
          target: `function ${name}`,
          operation: 'call',
          attacker,
          rule: callerRule(attacker),
          only: null,
          isOwned: false,
        })
  }
}

const callerRule = (attacker: AttackerKind): string =>
  attacker === 'anonymous' ? "caller: 'anyone', or a condition of its own" : "caller: 'user', or a condition of its own"

export async function attackResources(
  target: { readonly url: string; readonly config: Config; readonly buckets: readonly OutlinedTable[] },
  callers: Callers,
  findings: Findings,
): Promise<void> {
  const { url, config, buckets } = target
  for (const bucket of buckets) await attackBucket(bucket, callers, findings)
  for (const name of config.rooms.keys()) await attackRoom(name, url, callers, findings)
  await attackFunctions(callers, findings)
  for (const { target: name, path, body } of sealedIn(config))
    for (const [attacker, send] of callers.attackers)
      if ((await send('POST', path, { body })).isDone)
        findings.add(
          { target: name, operation: 'read', attacker, rule: 'service keys only', only: null, isOwned: false },
          true,
        )
}
