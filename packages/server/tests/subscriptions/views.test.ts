/** Which changes a subscription receives: rows that enter, stay in and leave the view of its rule and filters. */
import { describe, expect, test } from 'bun:test'
import { exists, field } from '../../src/access/filter.ts'
import { open } from '../harness/config.ts'
import { changeOf, itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer, rootKey } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const notes = '/api/db/shared/tables/notes'
const secrets = '/api/db/shared/tables/secrets'
const tasks = '/api/db/shared/tables/tasks'
const members = '/api/db/shared/tables/members'
const loose = '/api/db/shared/tables/loose'

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { title: { type: 'string' }, n: { type: 'number' } }, access: open },
        notes: {
          schema: { ownerId: { type: 'string' }, text: { type: 'text' }, isPublic: { type: 'boolean' } },
          access: {
            ...open,
            read: (auth: { id: string } | null) => (auth ? { ownerId: auth.id } : { isPublic: true }),
          },
        },
        secrets: {
          schema: { title: { type: 'string' }, pin: { type: 'string' } },
          hidden: ['pin'],
          access: { ...open },
        },
        members: { schema: { userId: { type: 'string' }, teamId: { type: 'string' } }, access: open },
        tasks: {
          schema: { teamId: { type: 'string' }, n: { type: 'number' } },
          access: {
            ...open,
            read: (auth: { id: string } | null) =>
              auth ? exists('members', { userId: auth.id, teamId: field('teamId') }) : false,
          },
        },
        loose: { access: open },
      },
    },
    space: {
      instance: true,
      access: (auth: { id: string } | null, id: string) => auth?.id === id,
      tables: { notes: { schema: { n: { type: 'number' } }, access: { ...open, read: true } } },
    },
  },
}

describeServer('views', { config }, (server) => {
  const insert = async (path: string, body: object): Promise<string> =>
    (await server.service.post(path, body)).body.id as string

  test('[SUB-13, SUB-20, SUB-21] a table subscription receives inserts, updates and deletes in order', async () => {
    const socket = await watch(server.url)
    expect(socket.subscribed).toMatchObject({ type: 'subscribed', channel: itemsChannel, serverFilter: false })
    const id = await insert(items, { title: 'one', n: 1 })
    await server.service.patch(`${items}/${id}`, { n: 2 })
    await server.service.delete(`${items}/${id}`)
    const [added, modified, removed] = [await socket.next(), await socket.next(), await socket.next()]
    expect(added).toMatchObject({
      type: 'db_change',
      channel: itemsChannel,
      table: 'items',
      changeType: 'added',
      docId: id,
      data: { id, title: 'one', n: 1 },
    })
    expect(new Date(added.timestamp).toISOString()).toBe(added.timestamp)
    expect(modified).toMatchObject({ changeType: 'modified', docId: id, data: { id, title: 'one', n: 2 } })
    expect(removed).toMatchObject({ changeType: 'removed', docId: id, data: null })
    for (const { cursor } of [added, modified, removed]) expect(cursor).toBeString()
    await socket.close()
  })

  test('[SUB-20] the data of a change is the record as get returns it', async () => {
    const socket = await watch(server.url, { channel: 'dblive:shared:loose' })
    const id = await insert(loose, { any: { thing: [1, null] }, title: 'x' })
    const { data } = await socket.expect('db_change')
    expect(JSON.stringify(data)).toBe((await server.service.get(`${loose}/${id}`)).text)
    await socket.close()
  })

  test('[SUB-13, SUB-22] rows enter and leave a filtered view, and changes outside it are not sent', async () => {
    const socket = await watch(server.url, { subscribe: { filters: [['n', '>=', 10]] } })
    expect(socket.subscribed.serverFilter).toBe(true)
    const id = await insert(items, { n: 1 })
    await server.service.patch(`${items}/${id}`, { n: 10 })
    await server.service.patch(`${items}/${id}`, { n: 11 })
    await server.service.patch(`${items}/${id}`, { n: 2 })
    await server.service.patch(`${items}/${id}`, { n: 3 })
    await server.service.delete(`${items}/${id}`)
    const other = await insert(items, { n: 12 })
    await server.service.delete(`${items}/${other}`)
    const messages = await socket.until(({ docId, changeType }) => docId === other && changeType === 'removed')
    expect(messages.map(({ changeType, docId, data }) => [changeType, docId, data?.n])).toEqual([
      ['added', id, 10],
      ['modified', id, 11],
      ['removed', id, undefined],
      ['added', other, 12],
      ['removed', other, undefined],
    ])
    await socket.close()
  })

  test('[SUB-22] a row must match all filters and at least one of orFilters', async () => {
    const subscribe = {
      filters: [['n', '<', 5]],
      orFilters: [
        ['title', '==', 'a'],
        ['title', '==', 'b'],
      ],
    }
    const socket = await watch(server.url, { subscribe })
    for (const [title, n] of [
      ['c', 1],
      ['a', 9],
      ['a', 1],
      ['b', 2],
    ])
      await insert(items, { title, n })
    expect((await socket.next()).data).toMatchObject({ title: 'a', n: 1 })
    expect((await socket.next()).data).toMatchObject({ title: 'b', n: 2 })
    await socket.close()
  })

  test('[SUB-23] subscribers receive the rows that the rule allows them; a row that changes owner leaves one view and enters another', async () => {
    const channel = 'dblive:shared:notes'
    const [ann, bob] = [await server.token('ann'), await server.token('bob')]
    const [one, other] = [
      await watch(server.url, { channel, token: ann }),
      await watch(server.url, { channel, token: bob }),
    ]
    const anonymous = await watch(server.url, { channel })
    const id = await insert(notes, { ownerId: 'ann', text: 'mine', isPublic: false })
    await server.service.patch(`${notes}/${id}`, { ownerId: 'bob' })
    await server.service.patch(`${notes}/${id}`, { isPublic: true })
    await server.service.delete(`${notes}/${id}`)
    const changes = async (socket: typeof one, count: number) => {
      const found: unknown[] = []
      for (let n = 0; n < count; n++) found.push((await socket.next()).changeType)
      return found
    }
    expect(await changes(one, 2)).toEqual(['added', 'removed'])
    expect(await changes(other, 3)).toEqual(['added', 'modified', 'removed'])
    expect(await changes(anonymous, 2)).toEqual(['added', 'removed'])
    // No other change was sent: the next message of each is the next visible row.
    const [forAnn, forBob] = [await insert(notes, { ownerId: 'ann' }), await insert(notes, { ownerId: 'bob' })]
    const forAll = await insert(notes, { ownerId: 'eve', isPublic: true })
    expect((await one.next()).docId).toBe(forAnn)
    expect((await other.next()).docId).toBe(forBob)
    expect((await anonymous.next()).docId).toBe(forAll)
    for (const socket of [one, other, anonymous]) await socket.close()
  })

  test('[SUB-24] a row that the rule no longer allows is removed without its data', async () => {
    const channel = 'dblive:shared:notes'
    const socket = await watch(server.url, { channel, token: await server.token('ann') })
    const id = await insert(notes, { ownerId: 'ann', text: 'before' })
    await server.service.patch(`${notes}/${id}`, { ownerId: 'bob', text: 'not for ann' })
    await socket.next()
    const removed = await socket.next()
    expect(changeOf(removed)).toEqual(['removed', id, null])
    expect(JSON.stringify(removed)).not.toContain('not for ann')
    await socket.close()
  })

  test('[SUB-25] a rule with exists is evaluated at each change of the row itself', async () => {
    const channel = 'dblive:shared:tasks'
    const socket = await watch(server.url, { channel, token: await server.token('mia') })
    const hidden = await insert(tasks, { teamId: 'red', n: 1 })
    await insert(members, { userId: 'mia', teamId: 'blue' })
    const shown = await insert(tasks, { teamId: 'blue', n: 1 })
    expect(await socket.next()).toMatchObject({ changeType: 'added', docId: shown })
    await server.service.patch(`${tasks}/${shown}`, { teamId: 'red' })
    expect(await socket.next()).toMatchObject({ changeType: 'removed', docId: shown })
    await server.service.patch(`${tasks}/${hidden}`, { teamId: 'blue' })
    expect(await socket.next()).toMatchObject({ changeType: 'added', docId: hidden })
    await socket.close()
  })

  test('[SUB-26] hidden fields are never sent, not even to a service key', async () => {
    const channel = 'dblive:shared:secrets'
    const socket = await watch(server.url, { channel, key: rootKey })
    const id = await insert(secrets, { title: 'x', pin: '1234' })
    await server.service.patch(`${secrets}/${id}`, { pin: '5678' })
    const messages = [await socket.next(), await socket.next()]
    expect(messages.map(({ changeType, data }) => [changeType, data.title, 'pin' in data])).toEqual([
      ['added', 'x', false],
      ['modified', 'x', false],
    ])
    expect(JSON.stringify(messages)).not.toMatch(/1234|5678/)
    await socket.close()
  })

  test('[SUB-27] a record channel sends changes of that record only, and is equally silent for a hidden and a missing one', async () => {
    const id = await insert(notes, { ownerId: 'ann', text: 'mine' })
    const token = await server.token('bob')
    const hidden = await watch(server.url, { channel: `dblive:shared:notes:${id}`, token })
    const absent = await watch(server.url, { channel: 'dblive:shared:notes:never', token })
    expect({ ...hidden.subscribed, channel: '', cursor: '' }).toEqual({ ...absent.subscribed, channel: '', cursor: '' })
    const mine = await watch(server.url, { channel: `dblive:shared:notes:${id}`, token: await server.token('ann') })
    await insert(notes, { ownerId: 'ann', text: 'another' })
    await server.service.patch(`${notes}/${id}`, { text: 'changed' })
    expect(await mine.next()).toMatchObject({ changeType: 'modified', docId: id })
    await server.service.patch(`${notes}/${id}`, { ownerId: 'bob' })
    expect(await hidden.next()).toMatchObject({ changeType: 'added', docId: id })
    await server.service.post(notes, { id: 'never', ownerId: 'bob' })
    expect(await absent.next()).toMatchObject({ changeType: 'added', docId: 'never' })
    for (const socket of [hidden, absent, mine]) await socket.close()
  })

  test('[SUB-28] subscribers of an instance receive its changes only, and only if the rule of the namespace allows them', async () => {
    const channelOf = (id: string) => `dblive:space:${id}:notes`
    const ann = await watch(server.url, { channel: channelOf('ann'), token: await server.token('ann') })
    const bob = await watch(server.url, { channel: channelOf('bob'), token: await server.token('bob') })
    const [forBob, forAnn] = [
      await insert('/api/db/space/bob/tables/notes', { n: 1 }),
      await insert('/api/db/space/ann/tables/notes', { n: 2 }),
    ]
    expect((await ann.next()).docId).toBe(forAnn)
    expect((await bob.next()).docId).toBe(forBob)
    bob.send({ type: 'subscribe', channel: channelOf('ann') })
    expect(await bob.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
    await ann.close()
    await bob.close()
  })

  describe('batches', () => {
    const insertMany = (count: number) =>
      server.service.post(`${items}/batch`, {
        inserts: Array.from({ length: count }, (_, n) => ({ title: 'many', n })),
      })

    test('[SUB-29] a request with 10 changes is one message, a request with 9 is nine messages', async () => {
      const socket = await watch(server.url)
      await insertMany(9)
      for (let n = 0; n < 9; n++) expect((await socket.expect('db_change')).data.n).toBe(n)
      await insertMany(10)
      const batch = await socket.expect('batch_changes')
      expect(batch).toMatchObject({ channel: itemsChannel, total: 10 })
      expect(batch.cursor).toBe(batch.changes.at(-1).cursor)
      for (const [n, change] of batch.changes.entries())
        expect(change).toMatchObject({ table: 'items', changeType: 'added', event: 'added', data: { n } })
      await socket.close()
    })

    test('[SUB-29, SUB-22] a batch contains and counts only the changes visible to its subscriber', async () => {
      const socket = await watch(server.url, { subscribe: { filters: [['n', '>=', 100]] } })
      const some = await watch(server.url, { subscribe: { filters: [['n', '>=', 495]] } })
      expect((await insertMany(500)).status).toBe(200)
      const received: unknown[] = []
      while (received.length < 400) {
        const batch = await socket.expect('batch_changes')
        expect(batch.total).toBe(batch.changes.length)
        received.push(...batch.changes)
      }
      expect(received).toHaveLength(400)
      for (let n = 495; n < 500; n++) expect((await some.expect('db_change')).data.n).toBe(n)
      const filter = [['n', '>=', 491]]
      await server.service.post(`${items}/batch-by-filter`, { action: 'delete', filter })
      for (let n = 495; n < 500; n++) expect((await some.expect('db_change')).changeType).toBe('removed')
      for (let n = 491; n < 500; n++) expect((await socket.expect('db_change')).changeType).toBe('removed')
      await socket.close()
      await some.close()
    })

    test('[SUB-30] the changes of a refused batch are not sent', async () => {
      const socket = await watch(server.url)
      const refused = await server.service.post(`${items}/batch`, {
        inserts: [{ n: 1 }, { n: 2 }],
        deletes: ['missing'],
      })
      expect(refused.status).toBe(404)
      const id = await insert(items, { n: 3 })
      expect((await socket.next()).docId).toBe(id)
      await socket.close()
    })
  })

  describe('update_filters', () => {
    test('[SUB-31] update_filters keeps an omitted group and clears a group that is null', async () => {
      const socket = await watch(server.url, {
        subscribe: { filters: [['n', '>', 10]], orFilters: [['title', '==', 'a']] },
      })
      const update = async (groups: object) => {
        socket.send({ type: 'update_filters', channel: itemsChannel, ...groups })
        return socket.expect('filters_updated')
      }
      expect(await update({ filters: [['n', '>', 20]] })).toMatchObject({ channel: itemsChannel, serverFilter: true })
      await insert(items, { n: 15, title: 'a' })
      await insert(items, { n: 25, title: 'b' })
      await insert(items, { n: 21, title: 'a' })
      expect((await socket.next()).data).toMatchObject({ n: 21, title: 'a' })
      await update({ filters: null })
      await insert(items, { n: 1, title: 'b' })
      await insert(items, { n: 1, title: 'a' })
      expect((await socket.next()).data).toMatchObject({ n: 1, title: 'a' })
      expect(await update({ orFilters: null })).toMatchObject({ serverFilter: false })
      await insert(items, { n: 2, title: 'z' })
      expect((await socket.next()).data).toMatchObject({ n: 2, title: 'z' })
      await socket.close()
    })

    test('[SUB-31] a refused update_filters keeps the previous filters', async () => {
      const socket = await watch(server.url, { subscribe: { filters: [['n', '>', 10]] } })
      socket.send({ type: 'update_filters', channel: itemsChannel, filters: [['nothing', '==', 1]] })
      expect(await socket.expect('error')).toMatchObject({ code: 'INVALID_FILTERS' })
      socket.send({ type: 'update_filters', channel: 'dblive:shared:notes', filters: null })
      expect(await socket.expect('error')).toMatchObject({ code: 'NOT_SUBSCRIBED' })
      await insert(items, { n: 5 })
      await insert(items, { n: 50 })
      expect((await socket.next()).data.n).toBe(50)
      await socket.close()
    })
  })
})
