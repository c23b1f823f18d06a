/** Lists that follow the database: live lists of the client, or arrays behind a bare socket. */
import { createClient, live, records } from '../../packages/client/src/index.ts'
import { authorAt } from '../setup/data.ts'
import { type Follower, listCount, rowsPerList } from './plan.ts'

export interface FollowJob {
  readonly do: 'open' | 'follow' | 'close'
  readonly follower: Follower
  readonly url: string
  /** The title that the first row of each list has in the end. */
  readonly end: string
}

export interface FollowResult {
  /** From the first change to the last one. */
  readonly seconds: number
  readonly cpuSeconds: number
  /** Of the rows of each list. */
  readonly digests: readonly string[]
}

export type Row = Readonly<Record<string, unknown>> & { readonly id: string; readonly title: string }

/** Lists that are open. `onChange` is called with the number of each list that has changed. */
interface Lists {
  readonly rowsOf: (list: number) => readonly Row[]
  close(): void
}

export const digestOf = (rows: readonly Row[]): string => Bun.hash(JSON.stringify(rows)).toString(16)

async function openLists(url: string, onChange: (list: number) => void): Promise<Lists> {
  const plinth = createClient(url, [records, live])
  const { notes } = plinth.db()
  const lists = Array.from({ length: listCount }, (_, at) =>
    notes.where('authorId', '==', authorAt(at)).sort('createdAt').limit(rowsPerList).live(),
  )
  for (const [at, list] of lists.entries()) list.subscribe(() => onChange(at))
  await Promise.all(lists.map(({ ready }) => ready))
  return {
    rowsOf: (list) => (lists[list]?.current.items ?? []) as unknown as readonly Row[],
    close: () => plinth.close(),
  }
}

interface Change {
  readonly docId: string
  readonly data: Row
}

/** The least work for the same result: `JSON.parse`, and a new array in which a row is replaced by its position. */
async function openSocket(url: string, onChange: (list: number) => void): Promise<Lists> {
  const lists: Row[][] = []
  const positions: ReadonlyMap<string, number>[] = []
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/db/subscribe`)
  const subscribed = Promise.withResolvers<void>()
  const open = new Set<string>()
  const replace = (list: number, changes: readonly Change[]): void => {
    const next = [...(lists[list] ?? [])]
    for (const { docId, data } of changes) next[positions[list]?.get(docId) ?? next.length] = data
    lists[list] = next
    onChange(list)
  }
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data as string)
    const list = Number(String(message.channel).split('#').at(-1))
    if (message.type === 'db_change') replace(list, [message])
    if (message.type === 'batch_changes') replace(list, message.changes)
    if (message.type === 'subscribed' && open.add(message.channel).size === listCount) subscribed.resolve()
    if (message.type === 'error') subscribed.reject(new Error(message.message))
  }
  await new Promise((resolve) => {
    socket.onopen = resolve
  })
  for (let at = 0; at < listCount; at++) {
    const rows = await readList(url, at)
    lists.push(rows)
    positions.push(new Map(rows.map(({ id }, position) => [id, position])))
    const filters = [['authorId', '==', authorAt(at)]]
    socket.send(JSON.stringify({ type: 'subscribe', channel: `dblive:shared:notes#${at}`, filters }))
  }
  await subscribed.promise
  return { rowsOf: (list) => lists[list] ?? [], close: () => socket.close() }
}

const readAttempts = 5

/** The rows of a list as the server has them. */
export async function readList(url: string, list: number): Promise<Row[]> {
  const query = new URLSearchParams({
    filter: JSON.stringify([['authorId', '==', authorAt(list)]]),
    sort: 'createdAt:asc',
    limit: String(rowsPerList),
  })
  let response: Response
  // A busy machine may refuse a read for a moment; this one is not measured.
  for (let attempt = 1; ; attempt++) {
    response = await fetch(`${url}/api/db/shared/tables/notes?${query}&after=`)
    if (response.ok) break
    const refusal = `list ${list}: ${response.status} ${await response.text()}`
    if (attempt === readAttempts) throw new Error(refusal)
    console.warn(refusal)
    await Bun.sleep(1000 * attempt)
  }
  const { items } = (await response.json()) as { items: Row[] }
  if (items.length !== rowsPerList) throw new Error(`list ${list} has ${items.length} rows`)
  return items
}

/** Reads the rows of a list whenever they change, as a page does, until all lists have their last change. */
export function createFollower() {
  let lists: Lists | undefined
  let changed: (list: number) => void = () => undefined

  async function follow(end: string): Promise<FollowResult> {
    const open = new Set(Array.from({ length: listCount }, (_, at) => at))
    const done = Promise.withResolvers<void>()
    const cpu = process.cpuUsage()
    let firstAt: number | undefined
    changed = (list) => {
      firstAt ??= performance.now()
      if (lists?.rowsOf(list)[0]?.title === end) open.delete(list)
      if (open.size === 0) done.resolve()
    }
    await done.promise
    const lastAt = performance.now()
    const { user, system } = process.cpuUsage(cpu)
    const digests = Array.from({ length: listCount }, (_, at) => digestOf(lists?.rowsOf(at) ?? []))
    return { seconds: (lastAt - (firstAt ?? lastAt)) / 1000, cpuSeconds: (user + system) / 1e6, digests }
  }

  return async ({ do: step, follower, url, end }: FollowJob): Promise<FollowResult | null> => {
    if (step === 'follow') return follow(end)
    if (step === 'close') lists?.close()
    else lists = await (follower === 'client' ? openLists : openSocket)(url, (list) => changed(list))
    return null
  }
}
