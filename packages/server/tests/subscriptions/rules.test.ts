/** Read rules that throw, and read rules that change, while sockets are open. */
import { expect, test } from 'bun:test'
import { exists, field } from '../../src/access/filter.ts'
import { open } from '../harness/config.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const notes = '/api/db/shared/tables/notes'
const notesChannel = 'dblive:shared:notes'

const configOf = (readItems: unknown, hidden: readonly string[] = []) => ({
  databases: {
    shared: {
      tables: {
        items: {
          schema: { n: { type: 'number' }, pin: { type: 'string' } },
          hidden,
          access: { ...open, read: readItems },
        },
        notes: {
          schema: { teamId: { type: 'string' } },
          access: {
            ...open,
            read: (auth: { id: string } | null) => {
              if (auth?.id === 'broken') throw new Error('secret of the rule')
              return auth?.id === 'member'
                ? // A rule that is evaluated with a query, for each changed row.
                  exists('members', { teamId: field('teamId') })
                : true
            },
          },
        },
        members: { schema: { teamId: { type: 'string' } }, access: open },
      },
    },
  },
})

describeServer('rules', { config: configOf(true) }, (server) => {
  test('[SUB-32] a rule that throws denies the subscriber it throws for, and no other', async () => {
    const allowed = await watch(server.url, { channel: notesChannel, token: await server.token('allowed') })
    const broken = await watch(server.url, { token: await server.token('broken') })
    broken.send({ type: 'subscribe', channel: notesChannel })
    const refused = await broken.expect('error')
    expect(refused).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
    expect(JSON.stringify(refused)).not.toContain('secret of the rule')
    const member = await watch(server.url, { channel: notesChannel, token: await server.token('member') })
    const { body } = await server.service.post(notes, { teamId: 'red' })
    expect((await allowed.next()).docId).toBe(body.id)
    await server.service.post('/api/db/shared/tables/members', { teamId: 'red' })
    expect(await member.next()).toMatchObject({ docId: body.id, changeType: 'added' })
    await server.service.patch(`${notes}/${body.id}`, { teamId: 'red' })
    expect(await member.next()).toMatchObject({ docId: body.id, changeType: 'modified' })
    for (const socket of [allowed, broken, member]) await socket.close()
  })

  test('[SUB-42] a reloaded configuration applies to open sockets', async () => {
    const token = await server.token('ann')
    const [mine, anonymous] = [await watch(server.url, { token }), await watch(server.url)]
    await server.service.post(items, { n: 1, pin: '1234' })
    expect((await mine.next()).data).toMatchObject({ n: 1, pin: '1234' })
    expect((await anonymous.next()).data).toMatchObject({ n: 1 })
    await server.reload(configOf((auth: unknown) => auth !== null && { n: 2 }, ['pin']))
    expect(await anonymous.next()).toMatchObject({
      type: 'error',
      code: 'CHANNEL_ACCESS_DENIED',
      status: 403,
      slug: 'access-denied',
    })
    await server.service.post(items, { n: 1, pin: '1234' })
    await server.service.post(items, { n: 2, pin: '1234' })
    const seen = await mine.until(({ data }) => data?.n === 2)
    expect(JSON.stringify(seen)).not.toContain('1234')
    expect(seen.filter(({ type }) => type === 'db_change')).toHaveLength(1)
    anonymous.send({ type: 'unsubscribe', channel: itemsChannel })
    expect(await anonymous.next()).toMatchObject({ code: 'NOT_SUBSCRIBED' })
    await mine.close()
    await anonymous.close()
    await server.reload(configOf(true))
  })
})
