/** Svelte stores: their contract, in a compiled component, and rendered on a server. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { get } from 'svelte/store'
import { describeServer } from '../../server/tests/harness/server.ts'
import { live, room, session } from '../src/svelte/index.ts'
import { type AppClient, config, connect } from './harness/app.ts'
import { openDom } from './harness/dom.ts'
import { openSvelte, type SvelteApp } from './harness/svelte.ts'
import { until } from './harness/until.ts'

const component = `
<script>
  let { group, live, session, room, record, client } = $props()
  const items = $derived(live(client.db().items.where('group', '==', group)))
  const user = session(client)
  const first = $derived(record(client.db().items, $items.items[0]?.id ?? null))
  const board = room(client, 'board', 'svelte')
</script>
<p>[{$items.status}{#each $items.items as { text }}:{text}{/each}][{$user.user?.id ?? 'none'}][\
{$first.record?.text ?? 'none'}][{$board.status} {$board.shared.count}]</p>
`

let dom: ReturnType<typeof openDom>
let svelte: SvelteApp
beforeAll(async () => {
  dom = openDom()
  svelte = await openSvelte(component)
})
afterAll(() => dom.close())

describeServer('Svelte stores', { config: config as object }, (server) => {
  let client: AppClient
  let wire: ReturnType<typeof connect>['wire']
  beforeEach(() => {
    ;({ client, wire } = connect(server))
  })
  afterEach(() => client.close())
  const inGroup = (group: string) => client.db().items.where('group', '==', group)

  test('a store calls back at once, whenever its value changes, and no more after the last unsubscribe', async () => {
    const store = live(inGroup('a'))
    const seen: string[] = []
    const other: string[] = []
    const show = (to: string[]) => store.subscribe(({ status, items }) => to.push(`${status} ${items.length}`))
    const stop = show(seen)
    expect(seen).toEqual(['loading 0'])
    const stopOther = show(other)
    await inGroup('a').live().ready
    expect([seen.at(-1), other.at(-1)]).toEqual(['live 0', 'live 0'])
    expect(wire.count('subscribe')).toBe(1)
    expect(wire.reads('items')).toBe(1)
    stop()
    const before = seen.length
    await client.db().items.insert({ group: 'a' })
    await until(inGroup('a').live(), ({ items }) => items.length === 1)
    expect(other.at(-1)).toBe('live 1')
    expect(seen).toHaveLength(before)
    stopOther()
    await until(wire, ({ open }) => open === 0)
  })

  test('a store without a query has an empty list', () => {
    expect(get(live(null))).toMatchObject({ items: [], status: 'loading' })
    expect(wire.current.created).toBe(0)
  })

  test('the store of the session follows sign-in and sign-out', async () => {
    const seen: unknown[] = []
    const stop = session(client).subscribe(({ user }) => seen.push(user?.id))
    const { user } = await client.auth.signInAnonymously()
    await client.auth.signOut()
    stop()
    await client.auth.signInAnonymously()
    expect(seen).toEqual([undefined, user.id, undefined])
  })

  test('a room is joined once for all uses of its stores, and left with the last', async () => {
    await client.auth.signInAnonymously()
    const stores = [room(client, 'board', 's1'), room(client, 'board', 's1')]
    const stops = stores.map((store) => store.subscribe(() => undefined))
    await client.room('board', 's1').join()
    expect(stores.map((store) => get(store).status)).toEqual(['joined', 'joined'])
    expect(get(stores[0] as (typeof stores)[0])).toMatchObject({ shared: { count: 0 }, members: [{}] })
    expect(wire.count('join')).toBe(1)
    for (const stop of stops) stop()
    await until(wire, ({ open }) => open === 0)
  })

  test('a component shows what changes, follows its properties, and releases everything', async () => {
    await client.auth.signInAnonymously()
    await client.db().items.insert({ group: 'c', text: 'one' })
    await client.db().items.insert({ group: 'd', text: 'other' })
    const me = client.auth.user?.id
    const element = dom.container()
    const app = svelte.mount(element, { group: 'c', client })
    await dom.shown(element, (text) => text === `[live:one][${me}][one][joined 0]`)
    await client.db().items.insert({ group: 'c', text: 'two' })
    await dom.shown(element, (text) => text.startsWith('[live:one:two]'))
    app.set({ group: 'd' })
    await dom.shown(element, (text) => text === `[live:other][${me}][other][joined 0]`)
    await app.unmount()
    await until(wire, ({ open }) => open === 0)
    expect(wire.count('join')).toBe(1)
  })

  test('a server renders without a subscription, and the page hydrates the same', async () => {
    const before = wire.current
    const html = await dom.onServer(() => svelte.renderToString({ group: 'e', client }))
    expect(wire.current).toBe(before)
    expect(client.room('board', 'svelte').status).toBe('closed')
    const element = dom.container(html)
    expect(element.textContent).toBe('[loading][none][none][closed ]')
    const paragraph = element.querySelector('p')
    const app = svelte.hydrate(element, { group: 'e', client })
    await dom.shown(element, (text) => text.startsWith('[live]'))
    expect(element.querySelector('p')).toBe(paragraph)
    await app.unmount()
  })
})
