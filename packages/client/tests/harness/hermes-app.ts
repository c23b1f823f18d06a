/**
 * An app on a runtime without the globals that Hermes lacks, run as `hermes-app.ts URL`. Imports the client once they
 * are removed. Prints what it has seen as JSON.
 */
import { createPhone } from './phone.ts'

const missing = [
  'crypto',
  'URL',
  'URLSearchParams',
  'structuredClone',
  'BroadcastChannel',
  'localStorage',
  'ReadableStream',
  'TextDecoder',
  'navigator',
  'document',
] as const
for (const name of missing) {
  Reflect.deleteProperty(globalThis, name)
  if (name in globalThis) throw new Error(`${name} cannot be removed`)
}
for (const name of ['any', 'timeout']) Reflect.deleteProperty(AbortSignal, name)
for (const name of ['reason', 'throwIfAborted']) Reflect.deleteProperty(AbortSignal.prototype, name)

const { createClient } = await import('../../src/all.ts')
const { reactNative } = await import('../../src/react-native/index.ts')
type Config = import('./app.ts').Config

const phone = createPhone()
const client = createClient<Config>(process.argv[2] as string, reactNative(phone))
const { items } = client.db()
const { user } = await client.auth.signUp({ email: 'hermes@client.example', password: 'a lighthouse at sea' })
await items.insert({ group: 'hermes', text: 'one' })
const list = items.where('group', '==', 'hermes').live()
const stop = list.subscribe(() => undefined)
await list.ready
const texts = (): unknown[] => list.current.items.map(({ text }) => text)
const changed = (isExpected: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const end = list.subscribe(() => {
      if (!isExpected()) return
      end()
      resolve()
    })
  })
const arriving = changed(() => texts().length === 2)
await items.optimistic.insert({ group: 'hermes', text: 'two' })
await arriving
const room = client.room('board', 'hermes')
await room.join()
await room.send('add', 4)
const stale = changed(() => list.current.status === 'stale')
phone.become('background')
await stale
const sending = room.send('add', 5)
const live = changed(() => list.current.status === 'live')
phone.become('active')
await Promise.all([live, sending])
const box = client.files('box')
const small = await box.upload('hermes-small', 'text')
const progress: number[] = []
const data = new Blob([new Uint8Array(6_000_000)])
const large = await box.upload('hermes-large', data, { onProgress: ({ sent }) => progress.push(sent) })
const aborting = new AbortController()
aborting.abort()
const aborted = await items.list({ signal: aborting.signal }).catch((error) => error.slug)
await client.auth.refresh()
stop()
room.disconnect()
client.close()
const next = createClient<Config>(process.argv[2] as string, reactNative(phone))
const session = await next.auth.ready
next.close()
console.log(
  JSON.stringify({
    isSameUser: session?.user.id === user.id,
    texts: texts(),
    shared: room.shared.current,
    sizes: [small, large].map((file) => (file as { size: number }).size),
    progress,
    aborted,
    listeners: phone.listeners,
  }),
)
