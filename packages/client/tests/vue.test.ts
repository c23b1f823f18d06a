/** Vue composables: in effect scopes, in mounted components, and rendered on a server. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { describeServer } from '../../server/tests/harness/server.ts'
import type { Query } from '../src/index.ts'
import { type AppClient, config, connect } from './harness/app.ts'
import { openDom } from './harness/dom.ts'
import { until } from './harness/until.ts'

let dom: ReturnType<typeof openDom>
/** Loaded once there is a document, which Vue looks for when it is loaded. */
let vue: typeof import('vue')
let plinth: typeof import('../src/vue/index.ts')
let renderToString: typeof import('vue/server-renderer')['renderToString']
beforeAll(async () => {
  dom = openDom()
  vue = await import('vue')
  plinth = await import('../src/vue/index.ts')
  ;({ renderToString } = await import('vue/server-renderer'))
})
afterAll(() => dom.close())

describeServer('Vue composables', { config: config as object }, (server) => {
  let client: AppClient
  let wire: ReturnType<typeof connect>['wire']
  const warnings: unknown[][] = []
  beforeEach(() => {
    ;({ client, wire } = connect(server))
    warnings.length = 0
    for (const method of ['warn', 'error'] as const)
      spyOn(console, method).mockImplementation(
        (...args) => void warnings.push(args.map((part) => (typeof part === 'string' ? part : typeof part))),
      )
  })
  afterEach(() => {
    client.close()
    expect(warnings).toEqual([])
  })

  type Item = { readonly id: string; readonly text: string | null }
  const inGroup = (group: string): Query<Item> => client.db().items.where('group', '==', group) as never
  /** Resolves as soon as a getter returns true. */
  const changed = (isExpected: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const scope = vue.effectScope(true)
      scope.run(() =>
        vue.watch(
          isExpected,
          (is) => {
            if (!is) return
            resolve()
            queueMicrotask(() => scope.stop())
          },
          { immediate: true, flush: 'sync' },
        ),
      )
    })
  const inScope = <Result>(run: () => Result): { result: Result; stop: () => void } => {
    const scope = vue.effectScope()
    return { result: scope.run(run) as Result, stop: () => scope.stop() }
  }

  test('equal queries share one subscription, which ends with the last scope', async () => {
    const scopes = [1, 2, 3].map(() => inScope(() => plinth.useLive(inGroup('a'))))
    for (const { result } of scopes) await changed(() => result.value.status === 'live')
    await client.db().items.insert({ group: 'a', text: 'one' })
    for (const { result } of scopes) await changed(() => result.value.items[0]?.text === 'one')
    expect(wire.count('subscribe')).toBe(1)
    expect(wire.reads('items')).toBe(2)
    const [first] = scopes
    for (const { stop } of scopes) stop()
    await until(wire, ({ open }) => open === 0)
    await client.db().items.insert({ group: 'a', text: 'two' })
    expect(first?.result.value.items).toHaveLength(1)
  })

  test('a query in a ref or a getter is followed; null reads nothing', async () => {
    await client.db().items.insert({ group: 'b2', text: 'second' })
    const query = vue.ref<Query<Item> | null>(inGroup('b1'))
    const group = vue.ref<string | null>(null)
    const { result, stop } = inScope(() => ({
      byRef: plinth.useLive(query as never),
      byGetter: plinth.useLive(() => (group.value === null ? null : inGroup(group.value))),
    }))
    await changed(() => result.byRef.value.status === 'live')
    expect(result.byGetter.value).toMatchObject({ items: [], status: 'loading' })
    expect(wire.count('subscribe')).toBe(1)
    query.value = inGroup('b2')
    group.value = 'b2'
    await changed(() => (result.byRef.value.items[0] as Item | undefined)?.text === 'second')
    await changed(() => result.byGetter.value.items[0]?.text === 'second')
    expect(wire.count('subscribe')).toBe(2)
    group.value = null
    await changed(() => result.byGetter.value.items.length === 0)
    stop()
  })

  test('the error of a refused query is shown; rows of a user disappear with the user', async () => {
    const { user } = await client.auth.signInAnonymously()
    await client.db().own.insert({ ownerId: user.id, text: 'secret' })
    const { result, stop } = inScope(() => ({
      rows: plinth.useLive(client.db().own),
      session: plinth.useSession(client),
    }))
    await changed(() => result.rows.value.items.length === 1)
    expect(result.session.user.value?.id).toBe(user.id)
    await client.auth.signOut()
    await changed(() => result.rows.value.error?.slug === 'authentication-required')
    expect(result.rows.value.items).toEqual([])
    expect(result.session.session.value).toBeNull()
    stop()
  })

  test('a record follows its row and its id', async () => {
    const [one, two] = [
      await client.db().items.insert({ text: 'one' }),
      await client.db().items.insert({ text: 'two' }),
    ]
    const id = vue.ref<string | null>(one.id)
    const { result, stop } = inScope(() => plinth.useRecord(client.db().items, id))
    await changed(() => result.value.record?.text === 'one')
    id.value = two.id
    await changed(() => result.value.record?.text === 'two')
    id.value = null
    await changed(() => result.value.record === null)
    stop()
  })

  test('a room is joined once for all scopes, as the user who signs in, and left with the last', async () => {
    const scopes = [1, 2].map(() => inScope(() => plinth.useRoom(client, 'board', 'v1')))
    const [first] = scopes.map(({ result }) => result)
    await changed(() => first?.state.value.status === 'closed')
    await client.auth.signInAnonymously()
    await changed(() => first?.state.value.status === 'joined')
    await first?.room.send('add', 3)
    await changed(() => first?.state.value.shared.count === 3)
    for (const { stop } of scopes) stop()
    await until(wire, ({ open }) => open === 0)
    expect(client.room('board', 'v1').status).toBe('closed')
  })

  const List = () =>
    vue.defineComponent({
      props: { group: { type: String, required: true } },
      setup(props) {
        const list = plinth.useLive(() => inGroup(props.group))
        const { user } = plinth.useSession(client)
        const { state } = plinth.useRoom(client, 'board', 'v2')
        return () =>
          vue.h('p', [
            `[${list.value.status}`,
            ...list.value.items.map(({ text }) => `:${text}`),
            `][${user.value?.id}][${state.value.status}]`,
          ])
      },
    })

  test('a component shows what changes, follows its properties, and releases everything', async () => {
    const { user } = await client.auth.signInAnonymously()
    await client.db().items.insert({ group: 'c', text: 'one' })
    const element = dom.container()
    const group = vue.ref('c')
    const app = vue.createApp({ render: () => vue.h(List(), { group: group.value }) })
    app.mount(element)
    await dom.shown(element, (text) => text === `[live:one][${user.id}][joined]`)
    await client.db().items.insert({ group: 'c', text: 'two' })
    await dom.shown(element, (text) => text.startsWith('[live:one:two]'))
    group.value = 'd'
    await dom.shown(element, (text) => text.startsWith('[live]'))
    app.unmount()
    await until(wire, ({ open }) => open === 0)
    expect(wire.count('join')).toBe(1)
  })

  test('a server renders without a subscription, and the page hydrates without a mismatch', async () => {
    const { user } = await client.auth.signInAnonymously()
    await client.db().items.insert({ group: 'e', text: 'hydrated' })
    const before = wire.current
    const root = { render: () => vue.h(List(), { group: 'e' }) }
    const html = await dom.onServer(() => renderToString(vue.createSSRApp(root)))
    expect(wire.current).toBe(before)
    expect(client.room('board', 'v2').status).toBe('closed')
    const element = dom.container(html)
    expect(element.textContent).toBe('[loading][undefined][closed]')
    const paragraph = element.querySelector('p')
    const app = vue.createSSRApp(root)
    app.mount(element)
    await dom.shown(element, (text) => text === `[live:hydrated][${user.id}][joined]`)
    expect(element.querySelector('p')).toBe(paragraph)
    app.unmount()
  })
})
