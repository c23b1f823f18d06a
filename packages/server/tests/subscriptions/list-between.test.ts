/**
 * A client lists records at any time between its cursor and the end of the changes that it missed. Whatever that list
 * contained, recovery from the cursor makes the client's copy equal to a current list.
 */
import { expect, test } from 'bun:test'
import { dependencyGroupsMax } from '../../src/limits/subscriptions.ts'
import { applyChanges, changesIn, watch } from '../harness/records/live.ts'
import { channel, clear, config, receivedMessages, table } from '../harness/records/memberships.ts'
import { describeServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'

describeServer('lists between a cursor and its recovery', { config }, (server) => {
  const put = (name: string, row: object) => server.service.post(`${table(name)}?upsert=true`, row)
  const remove = (name: string, id: string) => server.service.delete(`${table(name)}/${id}`)

  /** One client: lists, recovers from a cursor, and compares its copy with a list. */
  async function client(user: string | { id: string; custom: Record<string, unknown> }, of = channel) {
    const docs = table(of.split(':').at(-1) ?? '')
    const copy = new Map<string, Message>()
    const rows = async (): Promise<Map<string, Message>> => {
      const { body } = await server.as(user).get(`${docs}?limit=1000`)
      return new Map(body.items.map((row: Message) => [row.id, row]))
    }
    const subscribed = async (since?: string) => {
      const subscribe = since === undefined ? {} : { since }
      return watch(server.url, { channel: of, token: await server.token(user), subscribe })
    }
    return {
      copy,
      async start(): Promise<string> {
        const socket = await subscribed()
        await socket.close()
        return socket.subscribed.cursor
      },
      async list(): Promise<void> {
        copy.clear()
        for (const [id, row] of await rows()) copy.set(id, row)
      },
      /** Returns the changes that recovery sent. */
      async recover(since: string): Promise<unknown[][]> {
        const socket = await subscribed(since)
        expect(socket.subscribed.recovered).toBe(true)
        const messages = await receivedMessages(server, socket)
        applyChanges(copy, messages)
        await socket.close()
        expect(copy).toEqual(await rows())
        return changesIn(messages).map(({ changeType, docId }) => [changeType, docId])
      },
    }
  }

  test('[SUB-82] a record that was visible only during a short membership is removed', async () => {
    await clear(server)
    await put('docs', { id: 'brief', teamId: 'red' })
    await put('docs', { id: 'never', teamId: 'blue' })
    const ann = await client('ann')
    const since = await ann.start()
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    await ann.list()
    expect([...ann.copy.keys()]).toEqual(['brief'])
    await remove('members', 'm')
    expect(await ann.recover(since)).toEqual([['removed', 'brief']])
  })

  test('[SUB-82] a record hidden by a lost membership is added when the membership returns', async () => {
    await clear(server)
    await put('docs', { id: 'kept', teamId: 'red' })
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    const ann = await client('ann')
    const since = await ann.start()
    await remove('members', 'm')
    await ann.list()
    expect(ann.copy.size).toBe(0)
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    expect(await ann.recover(since)).toEqual([['added', 'kept']])
  })

  test('[SUB-82] a record that was created and deleted, or moved into view and out again, is removed', async () => {
    await clear(server)
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    await put('docs', { id: 'moved', teamId: 'blue' })
    const ann = await client('ann')
    const since = await ann.start()
    await put('docs', { id: 'brief', teamId: 'red' })
    await put('docs', { id: 'moved', teamId: 'red' })
    await ann.list()
    await remove('docs', 'brief')
    await put('docs', { id: 'moved', teamId: 'blue' })
    const removed = [...(await ann.recover(since))].sort()
    expect(removed).toEqual([
      ['removed', 'brief'],
      ['removed', 'moved'],
    ])
  })

  test('[SUB-82] under a rule that reads claims, a record that was created and deleted is removed', async () => {
    await clear(server)
    const ann = await client({ id: 'ann', custom: { team: 'red' } }, 'dblive:shared:claimed')
    const since = await ann.start()
    await put('claimed', { id: 'brief', teamId: 'red' })
    await put('claimed', { id: 'other', teamId: 'blue' })
    await ann.list()
    await remove('claimed', 'brief')
    await remove('claimed', 'other')
    expect(await ann.recover(since)).toEqual([['removed', 'brief']])
  })

  test('[SUB-82] every membership change since the cursor is followed, up to the bound beyond which nothing is recovered', async () => {
    await clear(server)
    const teams = Array.from({ length: dependencyGroupsMax / 2 }, (_, n) => `t${n}`)
    await server.service.post(`${table('docs')}/batch`, { inserts: teams.map((teamId) => ({ id: teamId, teamId })) })
    const ann = await client('ann')
    const since = await ann.start()
    for (const [n, teamId] of teams.entries()) {
      await put('members', { id: 'm', userId: 'ann', teamId })
      if (n === 5) await ann.list()
    }
    await remove('members', 'm')
    const removed = [...(await ann.recover(since))].sort()
    expect(removed).toEqual(teams.map((id) => ['removed', id]).sort())
    for (const teamId of teams) await put('members', { id: 'm', userId: 'ann', teamId })
    const socket = await watch(server.url, { channel, token: await server.token('ann'), subscribe: { since } })
    expect(socket.subscribed.recovered).toBe(false)
    await socket.close()
  })
})
