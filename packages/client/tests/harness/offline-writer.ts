/**
 * A process with a client whose storage is a folder: makes increments in the background until it is killed. Prints how
 * many writes were accepted, and `sent` when nothing waits.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, increment, live, persist, records, type SessionStorage } from '../../src/index.ts'

const [url = '', folder = '', token = '', from = '0', to = '0'] = process.argv.slice(2)
const pathOf = (key: string): string => join(folder, createHash('sha256').update(key).digest('hex'))
const storage: SessionStorage = {
  get: (key) => (existsSync(pathOf(key)) ? readFileSync(pathOf(key), 'utf8') : null),
  set(key, value) {
    writeFileSync(`${pathOf(key)}.next`, value)
    renameSync(`${pathOf(key)}.next`, pathOf(key))
  },
  remove: (key) => rmSync(pathOf(key), { force: true }),
}
const rejected: string[] = []
const client = createClient(
  url,
  [records, live, persist({ userId: () => 'ann', onReject: ({ error }) => rejected.push(error.slug) })],
  { getToken: () => token, storage, retries: 0 },
)
const { counters } = client.db()
// Of different records in turn, so that none is merged with the one before.
for (let at = Number(from); at < Number(to); at++) {
  await counters.optimistic.update(`c${at % 5}`, { n: increment(1 + at) })
  console.log(`accepted ${at}`)
}
console.log('made')
const report = (): void => {
  if (client.offline.pending === 0) console.log(`sent ${rejected.join()}`)
}
client.offline.subscribe(report)
await client.offline.flush().then(report, () => undefined)
