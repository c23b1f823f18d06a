/** React hooks in rendered components, against a server. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { describeServer } from '../../server/tests/harness/server.ts'
import type { Query } from '../src/index.ts'
import { type AppClient, config, connect } from './harness/app.ts'
import { openDom } from './harness/dom.ts'
import { openReact, type ReactLibraries } from './harness/react.ts'
import { until } from './harness/until.ts'
import { pauseRequests } from './harness/wire.ts'

type Item = { readonly id: string; readonly text?: string | null }

let dom: ReturnType<typeof openDom>
beforeAll(() => {
  dom = openDom()
})
afterAll(() => dom.close())

for (const version of [19, 18] as const)
  describeServer(`hooks of React ${version}`, { config: config as object }, (server) => {
    let library: ReactLibraries
    const errors: unknown[][] = []
    let client: AppClient
    let wire: ReturnType<typeof connect>['wire']
    const cleanups: (() => void)[] = []

    beforeAll(async () => {
      library = await openReact(version)
    })
    beforeEach(() => {
      errors.length = 0
      spyOn(console, 'error').mockImplementation((...args) => void errors.push(args))
      ;({ client, wire } = connect(server))
    })
    afterEach(() => {
      for (const cleanUp of cleanups.splice(0)) cleanUp()
      client.close()
      expect(errors).toEqual([])
    })

    /** Renders in StrictMode below a provider. */
    function render(node: () => unknown) {
      const { createElement, StrictMode } = library.React
      const element = dom.container()
      const root = library.createRoot(element, { onCaughtError: () => undefined } as object)
      const show = (): void =>
        root.render(
          createElement(StrictMode, null, createElement(library.plinth.PlinthProvider, { client }, node() as never)),
        )
      show()
      let isMounted = true
      const unmount = (): void => {
        if (isMounted) root.unmount()
        isMounted = false
      }
      cleanups.push(unmount)
      return {
        element,
        show,
        unmount,
        shown: (isExpected: (text: string) => boolean) => dom.shown(element, isExpected),
      }
    }
    const h: (...args: unknown[]) => unknown = (...args) => (library.React.createElement as never as typeof h)(...args)

    function List({ query }: { query: Query<Item> | null }) {
      const { items, status, isLoading, error } = library.plinth.useLive(query)
      return h(
        'p',
        null,
        `[${status}${isLoading ? ' loading' : ''}${error ? ` ${error.slug}` : ''}`,
        ...items.map(({ text }) => `:${text}`),
        ']',
      )
    }
    const inGroup = (group: string): Query<Item> => client.db().items.where('group', '==', group) as never

    test('components with equal queries share one subscription and one read', async () => {
      await client.db().items.insert({ group: 'a', text: 'one' })
      const { shown } = render(() => [1, 2, 3].map((key) => h(List, { key, query: inGroup('a') })))
      await shown((text) => text === '[live:one]'.repeat(3))
      expect(wire.current.created).toBe(1)
      expect(wire.count('subscribe')).toBe(1)
      expect(wire.reads('items')).toBe(2)
      await client.db().items.insert({ group: 'a', text: 'two' })
      await shown((text) => text.split(':two').length === 4)
    })

    test('a list that is unmounted and mounted again opens nothing twice, and is released after its last use', async () => {
      const view = render(() => h(List, { query: inGroup('b') }))
      await view.shown((text) => text === '[live]')
      view.unmount()
      const again = render(() => h(List, { query: inGroup('b') }))
      await again.shown((text) => text === '[live]')
      expect(wire.current.created).toBe(1)
      expect(wire.count('subscribe')).toBe(1)
      expect(wire.reads('items')).toBe(1)
      again.unmount()
      await until(wire, ({ open }) => open === 0)
    })

    test('a changed query releases the previous one; null reads nothing', async () => {
      await client.db().items.insert({ group: 'c2', text: 'second' })
      let query: Query<Item> | null = inGroup('c1')
      const view = render(() => [h(List, { key: 1, query }), h(List, { key: 2, query: inGroup('c3') })])
      await view.shown((text) => text === '[live][live]')
      query = inGroup('c2')
      view.show()
      await view.shown((text) => text === '[live:second][live]')
      await until(wire, ({ sent }) => sent.some(({ type }) => type === 'unsubscribe'))
      const { sent } = wire.current
      const subscribed = sent.filter(({ type }) => type === 'subscribe').map(({ channel }) => channel)
      expect(sent.find(({ type }) => type === 'unsubscribe')?.channel).toBe(subscribed[0] as string)
      query = null
      view.show()
      await view.shown((text) => text === '[loading][live]')
      expect(wire.count('subscribe')).toBe(3)
    })

    test('a query that changes before its list is read aborts the request', async () => {
      const paused = pauseRequests('"paused"')
      client.close()
      ;({ client } = connect(server, { fetch: paused.fetch }))
      await client.db().items.insert({ group: 'after', text: 'shown' })
      let query = inGroup('paused')
      const view = render(() => h(List, { query }))
      await paused.begun
      query = inGroup('after')
      view.show()
      await paused.aborted
      await view.shown((text) => text === '[live:shown]')
      // StrictMode subscribes twice.
      expect(paused.requests).toBe(1)
    })

    test('a hook without a query sends nothing', async () => {
      function Nothing() {
        const { record, isLoading } = library.plinth.useRecord(client.db().items, null)
        const { room, status } = library.plinth.useRoom('board', null)
        return h('p', null, JSON.stringify([record, isLoading, room, status]))
      }
      const { shown } = render(() => [h(List, { key: 1, query: null }), h(Nothing, { key: 2 })])
      await shown((text) => text === '[loading][null,false,null,"closed"]')
      expect(wire.current).toEqual({ requests: [], created: 0, open: 0, sent: [] })
    })

    test('the error of a refused query is shown', async () => {
      const query = () => client.db().closed as never
      const { shown } = render(() => h(List, { query: query() }))
      await shown((text) => text === '[closed authentication-required]')
      expect(wire.count('subscribe')).toBe(1)
    })

    test('rows of a user disappear when the user signs out', async () => {
      const { user } = await client.auth.signInAnonymously()
      await client.db().own.insert({ ownerId: user.id, text: 'secret' })
      const { shown } = render(() => h(List, { query: client.db().own as never }))
      await shown((text) => text === '[live:secret]')
      await client.auth.signOut()
      await shown((text) => text === '[closed authentication-required]')
      const other = await client.auth.signInAnonymously()
      await shown((text) => text === '[live]')
      await client.db().own.insert({ ownerId: other.user.id, text: 'mine' })
      await shown((text) => text === '[live:mine]')
    })

    test('a record follows its row and its id', async () => {
      const one = await client.db().items.insert({ text: 'one' })
      const two = await client.db().items.insert({ text: 'two' })
      let id = one.id
      function Text() {
        const { record, isLoading } = library.plinth.useRecord(client.db().items, id)
        return h('p', null, isLoading ? 'loading' : (record?.text ?? 'gone'))
      }
      const { shown, show } = render(() => h(Text))
      await shown((text) => text === 'one')
      await client.db().items.update(one.id, { text: 'uno' })
      await shown((text) => text === 'uno')
      id = two.id
      show()
      await shown((text) => text === 'two')
      await client.db().items.delete(two.id)
      await shown((text) => text === 'gone')
    })

    test('hooks follow another client of the same server', async () => {
      const other = connect(server)
      const query = (of: AppClient) => of.db().items.where('group', '==', 'clients') as never
      let current = client
      const { shown, show } = render(() => h(List, { query: query(current) }))
      await shown((text) => text === '[live]')
      current = other.client
      show()
      await until(other.wire, ({ requests }) => requests.length > 0)
      await until(wire, ({ open }) => open === 0)
      await shown((text) => text === '[live]')
      other.client.close()
    })

    function Who() {
      const { session, user, isLoading } = library.plinth.useSession()
      return h('p', null, isLoading ? 'loading' : session ? `signed in ${user?.id}` : 'signed out')
    }

    test('the session is loading until storage has been read, and follows sign-in and sign-out', async () => {
      const { promise, resolve } = Promise.withResolvers<string | null>()
      const storage = { get: () => promise, set: () => undefined, remove: () => undefined }
      client.close()
      ;({ client, wire } = connect(server, { storage }))
      const view = render(() => h(Who))
      await view.shown((text) => text === 'loading')
      resolve(null)
      await view.shown((text) => text === 'signed out')
      const { user } = await client.auth.signInAnonymously()
      await view.shown((text) => text === `signed in ${user.id}`)
      // A component that is mounted later knows the session from its first frame on.
      const seen: string[] = []
      function Late() {
        const { isLoading, user: shown } = library.plinth.useSession()
        seen.push(isLoading ? 'loading' : `${shown?.id}`)
        return null
      }
      const late = render(() => [h(Late, { key: 1 }), h('i', { key: 2 }, 'late')])
      await late.shown((text) => text === 'late')
      expect(new Set(seen)).toEqual(new Set([user.id]))
      await client.auth.signOut()
      await view.shown((text) => text === 'signed out')
    })

    test('nothing renders after an unmount', async () => {
      await client.auth.signInAnonymously()
      let renders = 0
      function Everything() {
        renders++
        library.plinth.useSession()
        library.plinth.useLive(inGroup('d'))
        const { upload } = library.plinth.useUpload('box')
        uploads.upload ??= upload
        return h('p', null, 'shown')
      }
      const uploads: { upload?: ReturnType<typeof library.plinth.useUpload>['upload'] } = {}
      const view = render(() => h(Everything))
      await view.shown((text) => text === 'shown')
      const uploading = uploads.upload?.('unmounted', 'text')
      view.unmount()
      const before = renders
      // Only the application decides that an upload ends.
      expect(await uploading).toMatchObject({ key: 'unmounted' })
      await client.db().items.insert({ group: 'd' })
      await client.auth.signOut()
      await until(wire, ({ open }) => open === 0)
      expect(renders).toBe(before)
    })

    function Board({ id }: { id: string }) {
      const { status, shared, members } = library.plinth.useRoom('board', id)
      return h('p', null, `[${status} ${shared.count} ${members.length}]`)
    }

    test('components of a room join it once, and leave with the last of them', async () => {
      await client.auth.signInAnonymously()
      const view = render(() => [1, 2, 3].map((key) => h(Board, { key, id: 'r1' })))
      await view.shown((text) => text === '[joined 0 1]'.repeat(3))
      expect(wire.current.created).toBe(1)
      expect(wire.count('join')).toBe(1)
      await client.room('board', 'r1').send('add', 2)
      await view.shown((text) => text === '[joined 2 1]'.repeat(3))
      view.unmount()
      const again = render(() => h(Board, { id: 'r1' }))
      await again.shown((text) => text === '[joined 2 1]')
      expect(wire.count('join')).toBe(1)
      again.unmount()
      await until(wire, ({ open }) => open === 0)
      expect(client.room('board', 'r1').status).toBe('closed')
    })

    test('a room is joined again as the user who signs in', async () => {
      const { shown } = render(() => h(Board, { id: 'r2' }))
      await shown((text) => text.startsWith('[closed'))
      await client.auth.signInAnonymously()
      await shown((text) => text === '[joined 0 1]')
      await client.auth.signOut()
      await shown((text) => text.startsWith('[closed'))
      await client.auth.signInAnonymously()
      await shown((text) => text.startsWith('[joined'))
    })

    function openUploads(bucket: string) {
      const hook: { current?: ReturnType<typeof library.plinth.useUpload> } = {}
      const states: unknown[] = []
      function Upload() {
        const state = library.plinth.useUpload(bucket)
        hook.current = state
        const { progress, isUploading, error } = state
        states.push(progress && { ...progress })
        return h('p', null, `[${isUploading ? 'uploading' : 'idle'} ${progress?.sent} ${error?.slug}]`)
      }
      const view = render(() => h(Upload))
      return { ...view, states, upload: () => hook.current as NonNullable<typeof hook.current> }
    }

    test('an upload shows its progress, its end and its error', async () => {
      await client.auth.signInAnonymously()
      const view = openUploads('box')
      await view.shown((text) => text === '[idle undefined undefined]')
      const seen: unknown[] = []
      const data = new Blob([new Uint8Array(6_000_000)])
      const stored = view.upload().upload('big', data, { onProgress: ({ sent }) => seen.push(sent) })
      await view.shown((text) => text.startsWith('[uploading'))
      expect(await stored).toMatchObject({ key: 'big', size: 6_000_000 })
      await view.shown((text) => text === '[idle 6000000 undefined]')
      expect(seen).toEqual([5_242_880, 6_000_000])
      const refused = openUploads('locked')
      await refused.shown((text) => text.startsWith('[idle'))
      await expect(refused.upload().upload('x', 'y')).rejects.toMatchObject({ slug: 'access-denied' })
      await refused.shown((text) => text === '[idle undefined access-denied]')
    })

    test('abort ends every upload of the hook, which is no error; so does the signal of one', async () => {
      await client.auth.signInAnonymously()
      const view = openUploads('box')
      await view.shown((text) => text.startsWith('[idle'))
      const { upload, abort } = view.upload()
      const both = Promise.allSettled([upload('a1', 'x'), upload('a2', 'y')])
      abort()
      for (const one of await both) expect(one).toMatchObject({ status: 'rejected', reason: { slug: 'aborted' } })
      await view.shown((text) => text === '[idle undefined undefined]')
      const controller = new AbortController()
      const other = upload('a3', 'z', { signal: controller.signal })
      controller.abort()
      await expect(other).rejects.toMatchObject({ slug: 'aborted' })
      await expect(upload('a4', 'z', { signal: controller.signal })).rejects.toMatchObject({ slug: 'aborted' })
      await view.shown((text) => text === '[idle undefined undefined]')
      expect(await upload('a5', 'z')).toMatchObject({ key: 'a5' })
    })

    test('a server renders without a subscription, and the page hydrates without a mismatch', async () => {
      await client.auth.signInAnonymously()
      await client.db().items.insert({ group: 'h', text: 'hydrated' })
      const { createElement, StrictMode } = library.React
      const app = () =>
        createElement(
          StrictMode,
          null,
          createElement(
            library.plinth.PlinthProvider,
            { client },
            h(List, { query: inGroup('h') }) as never,
            h(Who) as never,
            h(Board, { id: 'r3' }) as never,
          ),
        )
      const before = wire.current
      const html = await dom.onServer(() => library.renderToString(app()))
      expect(wire.current).toBe(before)
      const element = dom.container(html)
      expect(element.textContent).toBe('[loading loading]loading[closed undefined 0]')
      const recovered: unknown[] = []
      const root = library.hydrateRoot(element, app(), { onRecoverableError: (error) => recovered.push(error) })
      await dom.shown(element, (text) => text === `[live:hydrated]signed in ${client.auth.user?.id}[joined 0 1]`)
      root.unmount()
      expect(recovered).toEqual([])
    })

    if (version === 18) return

    test('a list suspends until it is ready, and is read once', async () => {
      await client.db().items.insert({ group: 's', text: 'ready' })
      function Ready() {
        library.React.use(inGroup('s').live().ready)
        return h(List, { query: inGroup('s') })
      }
      const { shown } = render(() => h(library.React.Suspense, { fallback: 'waiting' }, h(Ready)))
      await shown((text) => text === 'waiting')
      await shown((text) => text === '[live:ready]')
      expect(wire.count('subscribe')).toBe(1)
      expect(wire.reads('items')).toBe(2)
    })

    test('a refused list throws to the error boundary, once', async () => {
      class Boundary extends library.React.Component<{ children?: never }> {
        override state: { error?: { slug: string } } = {}
        static getDerivedStateFromError = (error: { slug: string }) => ({ error })
        override render = () => (this.state.error ? `failed: ${this.state.error.slug}` : this.props.children)
      }
      function Refused() {
        library.React.use(client.db().closed.live().ready)
        return h('p', null, 'never')
      }
      const { shown } = render(() => h(Boundary, null, h(library.React.Suspense, { fallback: 'waiting' }, h(Refused))))
      await shown((text) => text === 'waiting')
      await shown((text) => text === 'failed: authentication-required')
      expect(wire.count('subscribe')).toBe(1)
    })
  })
