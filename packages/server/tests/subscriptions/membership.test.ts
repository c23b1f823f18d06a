/**
 * Subscriptions under a rule with `exists` follow the tables that the rule reads: rows are added when access is gained
 * and removed when it is lost, and recovery sends no values from before access was gained.
 */
import { expect, test } from 'bun:test'
import type { Answer } from '../harness/client.ts'
import { applyChanges, changesIn, watch } from '../harness/records/live.ts'
import { channel, clear, config, receivedMessages, table } from '../harness/records/memberships.ts'
import { describeServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'

const namesOf = (messages: readonly Message[]) =>
  changesIn(messages).map(({ changeType, docId }) => [changeType, docId])

describeServer('membership', { config }, (server) => {
  const put = (name: string, row: object) => server.service.post(`${table(name)}?upsert=true`, row)
  const watchAs = async (id: string, more: object = {}) =>
    watch(server.url, { channel, token: await server.token(id), ...more })

  test('[SUB-80] rows are added when access is gained and removed when it is lost', async () => {
    await clear(server)
    for (const id of ['r1', 'r2']) await put('docs', { id, teamId: 'red', title: id })
    await put('docs', { id: 'b1', teamId: 'blue', title: 'b1' })
    await put('docs', { id: 'o1', teamId: 'red', title: 'o1', isOpen: true })
    const socket = await watchAs('ann')
    await put('members', { id: 'm1', userId: 'ann', teamId: 'red' })
    const gained = await receivedMessages(server, socket)
    expect(namesOf(gained).sort()).toEqual([
      ['added', 'r1'],
      ['added', 'r2'],
    ])
    expect(changesIn(gained)[0]?.data).toMatchObject({ teamId: 'red', title: expect.any(String) })
    // Another membership of the same team, and another user's, change nothing.
    await put('members', { id: 'm2', userId: 'ann', teamId: 'red' })
    await put('members', { id: 'm3', userId: 'bob', teamId: 'blue' })
    await server.service.delete(`${table('members')}/m2`)
    expect(namesOf(await receivedMessages(server, socket))).toEqual([])
    await server.service.patch(`${table('members')}/m1`, { teamId: 'blue' })
    expect(namesOf(await receivedMessages(server, socket)).sort()).toEqual([
      ['added', 'b1'],
      ['removed', 'r1'],
      ['removed', 'r2'],
    ])
    await put('bans', { id: 'x', userId: 'ann' })
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['removed', 'b1']])
    await server.service.delete(`${table('bans')}/x`)
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['added', 'b1']])
    await server.service.delete(`${table('members')}/m1`)
    const [removed] = changesIn(await receivedMessages(server, socket))
    expect(removed).toMatchObject({ changeType: 'removed', docId: 'b1', data: null })
    await socket.close()
  })

  test('[SUB-80] memberships changed by batch and by filter update a filtered view, along with changes of its rows', async () => {
    await clear(server)
    const inserts = Array.from({ length: 20 }, (_, n) => ({ id: `d${n}`, teamId: `t${n % 4}`, title: 'x' }))
    await server.service.post(`${table('docs')}/batch`, { inserts })
    const socket = await watchAs('ann', { subscribe: { filters: [['title', '==', 'x']] } })
    const members = ['t0', 't1', 't2'].map((teamId) => ({ id: teamId, userId: 'ann', teamId }))
    await server.service.post(`${table('members')}/batch`, { inserts: members })
    const view = new Map<string, Message>()
    const gained = await receivedMessages(server, socket)
    expect(gained[0]?.type).toBe('batch_changes')
    applyChanges(view, gained)
    expect([...view.keys()].sort()).toEqual(
      inserts
        .filter(({ teamId }) => teamId !== 't3')
        .map(({ id }) => id)
        .sort(),
    )
    await server.service.post(`${table('members')}/batch-by-filter`, {
      action: 'delete',
      filter: [['teamId', 'in', ['t0', 't1']]],
    })
    await server.service.patch(`${table('docs')}/d0`, { teamId: 't2' })
    await server.service.patch(`${table('docs')}/d2`, { teamId: 't0' })
    applyChanges(view, await receivedMessages(server, socket))
    const { body } = await server.as('ann').get(`${table('docs')}?limit=1000`)
    expect([...view.keys()].sort()).toEqual(body.items.map(({ id }: Message) => id).sort())
    await socket.close()
  })

  test('[DB-VER-8] a row that another table moves into or out of the view has its own version', async () => {
    await clear(server)
    const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)-/.exec(headers.get('etag') ?? '')?.[1])
    const doc = await put('docs', { id: 'd', teamId: 'red' })
    const socket = await watchAs('ann')
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    const later = await server.service.patch(`${table('docs')}/d`, { title: 'later' })
    await server.service.delete(`${table('members')}/m`)
    const changes = changesIn(await receivedMessages(server, socket))
    const last = changes.at(-1)
    expect(last).toMatchObject({ changeType: 'removed', docId: 'd', version: versionOf(later) })
    for (const { data, version } of changes.filter((one) => one.changeType !== 'removed')) {
      if (data.title === 'later') {
        expect(version).toBe(versionOf(later))
        continue
      }
      // The row may have changed again before its earlier state was read.
      expect(version).toBeGreaterThanOrEqual(versionOf(doc))
      expect(version).toBeLessThan(versionOf(later))
    }
    const again = await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    expect(again.status).toBe(201)
    const [added] = changesIn(await receivedMessages(server, socket))
    expect(added).toMatchObject({ changeType: 'added', docId: 'd', version: versionOf(later) })
    await socket.close()
  })

  test('[SUB-80] a rule with nested exists follows both tables', async () => {
    await clear(server)
    await put('docs', { id: 'd', teamId: 'red' })
    await put('tasks', { id: 't', docId: 'd' })
    const tasks = 'dblive:shared:tasks'
    const socket = await watch(server.url, { channel: tasks, token: await server.token('ann') })
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['added', 't']])
    await server.service.patch(`${table('docs')}/d`, { teamId: 'blue' })
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['removed', 't']])
    await server.service.patch(`${table('members')}/m`, { teamId: 'blue' })
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['added', 't']])
    await server.service.delete(`${table('docs')}/d`)
    expect(namesOf(await receivedMessages(server, socket))).toEqual([['removed', 't']])
    await socket.close()
  })

  test('[SUB-81] a membership change that concerns more than 1,000 rows sends resync, and later changes follow', async () => {
    await clear(server)
    for (let start = 0; start < 1200; start += 300)
      await server.service.post(`${table('docs')}/batch`, {
        inserts: Array.from({ length: 300 }, (_, n) => ({ id: `d${start + n}`, teamId: 'big' })),
      })
    const socket = await watchAs('ann')
    await put('members', { id: 'm', userId: 'ann', teamId: 'big' })
    expect(await socket.next()).toEqual({ type: 'resync', channel, cursor: expect.any(String) })
    await server.service.patch(`${table('docs')}/d7`, { title: 'after' })
    expect(await socket.next()).toMatchObject({ type: 'db_change', changeType: 'modified', docId: 'd7' })
    await server.service.delete(`${table('members')}/m`)
    expect(await socket.next()).toMatchObject({ type: 'resync', channel })
    await socket.close()
  })

  test('[SUB-82] recovery sends current rows, and no values from before access was gained', async () => {
    await clear(server)
    await put('members', { id: 'own', userId: 'ann', teamId: 'red' })
    await put('docs', { id: 'gone', teamId: 'red' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'first' })
    await put('docs', { id: 'ghost', teamId: 'blue', title: 'secret ghost' })
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'secret old' })
    const { subscribed, close } = await watchAs('ann')
    await close()
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'secret older' })
    await server.service.delete(`${table('docs')}/ghost`)
    await put('docs', { id: 'brief', teamId: 'blue', title: 'secret brief' })
    await server.service.delete(`${table('docs')}/brief`)
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'now' })
    await put('members', { id: 'gained', userId: 'ann', teamId: 'blue' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'second' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'third' })
    await server.service.delete(`${table('docs')}/gone`)
    const again = await watchAs('ann', { subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    const messages = await receivedMessages(server, again)
    expect(namesOf(messages).sort()).toEqual([
      ['added', 'blue1'],
      ['modified', 'kept'],
      ['removed', 'gone'],
    ])
    expect(JSON.stringify(messages)).not.toContain('secret')
    const view = new Map<string, Message>()
    applyChanges(view, messages)
    expect(view.get('blue1')?.title).toBe('now')
    expect(view.get('kept')?.title).toBe('third')
    await again.close()
  })

  test('[SUB-82] recovery after access was lost removes the rows that were visible, and names no others', async () => {
    await clear(server)
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    await put('docs', { id: 'seen', teamId: 'red' })
    const { subscribed, close } = await watchAs('ann')
    await close()
    await server.service.delete(`${table('members')}/m`)
    await put('docs', { id: 'later', teamId: 'red', title: 'secret' })
    await server.service.delete(`${table('docs')}/later`)
    const again = await watchAs('ann', { subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    expect(namesOf(await receivedMessages(server, again))).toEqual([['removed', 'seen']])
    await again.close()
  })

  test('[SUB-83] a cursor issued under other claims is not recovered', async () => {
    await clear(server)
    const claimed = 'dblive:shared:claimed'
    const watchClaimed = async (team: string, subscribe: Readonly<Record<string, unknown>> = {}) =>
      watch(server.url, { channel: claimed, token: await server.token({ id: 'ann', custom: { team } }), subscribe })
    await put('claimed', { id: 'c', teamId: 'blue', title: 'secret' })
    const { subscribed, close } = await watchClaimed('red')
    await close()
    await server.service.delete(`${table('claimed')}/c`)
    await put('claimed', { id: 'd', teamId: 'blue', title: 'old' })
    await put('claimed', { id: 'd', teamId: 'blue', title: 'new' })
    const other = await watchClaimed('blue', { since: subscribed.cursor })
    expect(other.subscribed.recovered).toBe(false)
    expect(namesOf(await receivedMessages(server, other))).toEqual([])
    await put('claimed', { id: 'd', teamId: 'blue', title: 'newer' })
    await put('claimed', { id: 'd', teamId: 'blue', title: 'newest' })
    await other.close()
    // Under the same claims recovery sends current rows.
    const same = await watchClaimed('blue', { since: other.subscribed.cursor })
    expect(same.subscribed.recovered).toBe(true)
    const messages = await receivedMessages(server, same)
    expect(namesOf(messages)).toEqual([['modified', 'd']])
    expect(messages[0]?.data.title).toBe('newest')
    await same.close()
  })
})
