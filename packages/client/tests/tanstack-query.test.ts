/** `queryOptions` with TanStack Query: what it reads, and when its requests are aborted. */
import { expect, test } from 'bun:test'
import { QueryClient, QueryObserver } from '@tanstack/query-core'
import { describeServer } from '../../server/tests/harness/server.ts'
import type { Query } from '../src/index.ts'
import { queryOptions } from '../src/react/index.ts'
import { type AppClient, config, connect } from './harness/app.ts'
import { pauseRequests } from './harness/wire.ts'

type Item = { readonly id: string; readonly text?: string | null }

const inGroup = (client: AppClient, group: string): Query<Item> =>
  client.db().items.where('group', '==', group) as never

describeServer('queries of TanStack Query', { config: config as object }, (server) => {
  test('the options of a query have its key and its rows', async () => {
    const { client } = connect(server)
    await client.db().items.insert({ group: 'q', text: 'queried' })
    const queries = new QueryClient()
    const options = queryOptions(inGroup(client, 'q'))
    expect((await queries.fetchQuery(options)).map(({ text }) => text)).toEqual(['queried'])
    expect(queries.getQueryData(queryOptions(inGroup(client, 'q')).queryKey)).toHaveLength(1)
    expect(queries.getQueryData(queryOptions(inGroup(client, 'other')).queryKey)).toBeUndefined()
    const refused = queries.fetchQuery({ ...queryOptions(client.db().closed), retry: false })
    await expect(refused).rejects.toMatchObject({ slug: 'authentication-required' })
    const running = queries.fetchQuery(queryOptions(inGroup(client, 'aborted')))
    await queries.cancelQueries()
    await expect(running).rejects.toThrow()
    queries.clear()
    client.close()
  })

  test('the request of options that have changed is aborted', async () => {
    const paused = pauseRequests('"paused"')
    const { client } = connect(server, { fetch: paused.fetch })
    await client.db().items.insert({ group: 'later', text: 'read' })
    const queries = new QueryClient()
    const observer = new QueryObserver(queries, queryOptions(inGroup(client, 'paused')))
    const read = Promise.withResolvers<readonly Item[]>()
    const stop = observer.subscribe(({ data }) => data && read.resolve(data))
    await paused.begun
    observer.setOptions(queryOptions(inGroup(client, 'later')))
    await paused.aborted
    expect(await read.promise).toMatchObject([{ text: 'read' }])
    stop()
    queries.clear()
    client.close()
  })
})
