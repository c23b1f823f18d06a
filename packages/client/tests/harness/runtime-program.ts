/**
 * One program on every feature of the client, for any runtime: uses nothing but the client and what every runtime has.
 * `run` returns what happened, as text that is equal everywhere.
 */
import { createClient, isPlinthError, memoryStorage } from '../../src/all.ts'
import type { ClientOptions } from '../../src/types/options.ts'

interface Observable {
  subscribe(listener: () => void): () => void
}

const until = (observable: Observable, isReached: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const stop = observable.subscribe(() => {
      if (isReached()) resolve(stop())
    })
    if (isReached()) resolve(stop())
  })

export async function run(url: string, options: ClientOptions = {}): Promise<string> {
  const steps: unknown[] = []
  const client = createClient(url, { storage: memoryStorage(), ...options })
  const { items } = client.db()

  const { user } = await client.auth.signInAnonymously()
  await client.auth.refresh()
  steps.push(['session', client.auth.user?.id === user.id, user.isAnonymous])

  const item = await items.insert({ text: 'one', n: 1 })
  await items.update(item.id, { n: 2 })
  const listed = await items.where('n', '>', 1).where('id', '==', item.id).select('text', 'n').list()
  steps.push(['records', listed.items, listed.total])
  const error: unknown = await items.get('missing').catch((thrown: unknown) => thrown)
  steps.push(['error', isPlinthError(error, 'not-found')])

  const list = items.where('text', '==', item.id).live()
  steps.push(['live', (await list.ready).length])
  await Promise.all([
    until(list, () => list.current.items.length === 1),
    items.optimistic.insert({ text: item.id, n: 3 }),
  ])
  steps.push(['changed', list.current.items[0].n])

  const room = client.room('counter', item.id)
  room.predict('add', (shared) => {
    shared.count += 1
  })
  await room.join()
  const answers = await Promise.all([room.send('add'), room.send('add')])
  await until(room.shared, () => room.shared.current.count === 2)
  steps.push(['room', answers, room.status])

  const files = client.files('box')
  const bytes = new Uint8Array(6 * 1024 * 1024).fill(7)
  await files.upload(`${item.id}/small`, 'hello')
  const progress: number[] = []
  await files.upload(`${item.id}/large`, bytes, { onProgress: ({ sent }) => progress.push(sent) })
  steps.push(['files', await (await files.download(`${item.id}/small`)).text(), progress.at(-1)])
  steps.push(['size', (await files.download(`${item.id}/large`)).size])

  await client.auth.signOut()
  steps.push(['signed out', client.auth.session])
  client.close()
  return JSON.stringify(steps)
}
