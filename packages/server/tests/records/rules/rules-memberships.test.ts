/** `exists` beyond tables: members of a workspace read its files, join its room and address its instance. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { and, defineConfig, exists, field, not, or, where } from '../../../src/config/define.ts'
import { type Client, query } from '../../harness/client.ts'
import { brokenLater, open } from '../../harness/config.ts'
import { watch } from '../../harness/records/live.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { enter, join } from '../../harness/rooms/rooms.ts'
import { describeServer } from '../../harness/server.ts'
import {
  bucketPath,
  filePath,
  formOfUpload,
  pathOf,
  store,
  tusCreate,
  upload,
  uploadPart,
} from '../../harness/storage/files.ts'

const schema = { workspace: { type: 'string' }, user: { type: 'string' }, role: { type: 'string' } } as const
const members = '/api/db/shared/tables/members'
const summary = '/api/room/summary'

const config = defineConfig({
  databases: {
    shared: {
      tables: { members: { schema, access: { insert: true } }, banned: { schema: { user: { type: 'string' } } } },
    },
    workspace: {
      instance: true,
      access: (auth, id) =>
        auth &&
        and(
          or(exists('members', { workspace: id, user: auth.id }), exists('guests', { user: auth.id })),
          not(exists('banned', { user: auth.id })),
        ),
      tables: { notes: { access: open }, guests: { schema: { user: { type: 'string' } } } },
    },
    // A filter over the instance itself.
    own: {
      instance: true,
      access: (auth) => auth && exists('members', { user: auth.id, workspace: field('id') }),
      tables: { notes: { access: open } },
    },
    later: { instance: true, access: async (auth, id) => auth?.id === id, tables: { notes: { access: open } } },
    failing: {
      instance: true,
      access: brokenLater(() => Promise.reject(new Error('a rule that throws'))) as () => false,
      tables: { notes: { access: open } },
    },
  },
  storage: {
    buckets: {
      attachments: {
        access: {
          read: (auth) =>
            auth &&
            or(
              { uploadedBy: auth.id },
              exists('members', { user: auth.id, workspace: field('customMetadata.workspace') }),
            ),
          write: (auth) =>
            auth && exists('members', { user: auth.id, workspace: field('customMetadata.workspace'), role: 'editor' }),
          delete: (auth) => auth && and(where('size', '<', 100), exists('members', { user: auth.id, role: 'editor' })),
        },
      },
      // Every user who is not banned may read; anonymous callers may not read the files of banned users.
      square: {
        access: {
          read: (auth) =>
            auth ? not(exists('banned', { user: auth.id })) : not(exists('banned', { user: field('uploadedBy') })),
          write: true,
        },
      },
    },
  },
  rooms: {
    workspace: {
      access: {
        join: (auth, id) => auth && exists('members', { workspace: id, user: auth.id }),
        metadata: (auth) => auth && exists('members', { workspace: field('id'), user: auth.id }),
        action: (auth, id, type) =>
          type !== 'edit' || exists('members', { workspace: id, user: auth?.id ?? '', role: 'editor' }),
        signal: async (_, __, event) => event === 'wave',
      },
      actions: { inspect: () => 'seen', edit: () => 'edited' },
    },
    failing: { access: { join: brokenLater(() => Promise.reject(new Error('a rule that throws'))) as () => false } },
  },
})

describeServer('memberships', { config, mode: 'release' }, (server) => {
  const enroll = async (user: string, workspace: string, role = 'viewer') =>
    expect((await server.service.post(members, { id: `${user}-${workspace}`, user, workspace, role })).status).toBe(201)

  beforeEach(async () => {
    for (const table of [members, '/api/db/shared/tables/banned'])
      await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })
    await enroll('edith', 'red', 'editor')
    await enroll('vic', 'red')
    await enroll('olga', 'blue', 'editor')
  })

  describe('files', () => {
    const file = (workspace: string) => ({ key: `${workspace}/plan`, content: workspace, metadata: { workspace } })
    const red = filePath('attachments', 'red/plan')

    beforeEach(async () => {
      for (const workspace of ['red', 'blue']) await store(server.service, 'attachments', file(workspace))
    })

    test('[RULE-20] members can read with every kind of read', async () => {
      const reads: readonly ((client: Client) => Promise<{ status: number }>)[] = [
        (client) => client.get(red),
        (client) => client.request('HEAD', red),
        (client) => client.get(`${red}/metadata`),
        (client) => client.post(`${bucketPath('attachments')}/signed-url`, { key: 'red/plan' }),
        (client) => client.post(`${bucketPath('attachments')}/signed-urls`, { keys: ['red/plan'] }),
      ]
      for (const read of reads) {
        expect((await read(server.as('vic'))).status).toBe(200)
        expect((await read(server.as('edith'))).status).toBe(200)
        expect((await read(server.as('olga'))).status).toBe(403)
        expect((await read(server.anonymous)).status).toBe(401)
      }
      const { body } = await server.as('vic').post(`${bucketPath('attachments')}/signed-url`, { key: 'red/plan' })
      expect((await server.anonymous.get(pathOf(body.url))).text).toBe('red')
      await server.service.delete(`${members}/vic-red`)
      expectRefusal(await server.as('vic').get(red), 403)
      expectRefusal(await server.anonymous.get(pathOf(body.url)), 403)
    })

    test('[RULE-20, STORE-LIST-2] a paginated list contains only files that the rule allows', async () => {
      for (let at = 0; at < 7; at++)
        await store(server.service, 'attachments', {
          key: `x${at}`,
          content: 'x',
          metadata: { workspace: at % 2 === 0 ? 'red' : 'blue' },
        })
      const keysOf = async (client: Client, limit: number): Promise<string[]> => {
        const keys: string[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
          const { status, body } = await client.get(`${bucketPath('attachments')}?limit=${limit}${more}`)
          expect(status).toBe(200)
          expect(body.truncated).toBe(body.cursor !== null)
          expect(body.objects.length).toBeLessThanOrEqual(limit)
          keys.push(...body.objects.map(({ key }: { key: string }) => key))
          cursor = body.cursor
        }
        return keys
      }
      for (const limit of [1, 2, 5, 100]) {
        expect(await keysOf(server.as('vic'), limit)).toEqual(['red/plan', 'x0', 'x2', 'x4', 'x6'])
        expect(await keysOf(server.as('olga'), limit)).toEqual(['blue/plan', 'x1', 'x3', 'x5'])
        expect(await keysOf(server.as('zoe'), limit)).toEqual([])
      }
      for (let at = 0; at < 7; at++) await server.service.delete(filePath('attachments', `x${at}`))
    })

    test('[RULE-20, STORE-RULE-4] editors can write with every kind of write', async () => {
      const writes: readonly ((client: Client) => Promise<{ status: number }>)[] = [
        (client) => upload(client, 'attachments', { ...file('red'), key: 'red/new' }),
        (client) => client.patch(`${red}/metadata`, { title: 'x' }),
        async (client) => {
          const body = { key: 'red/parts', customMetadata: { workspace: 'red' } }
          const created = await client.post(`${bucketPath('attachments')}/multipart/create`, body)
          if (created.status !== 200) return created
          const { uploadId } = created.body
          const part = { uploadId, partNumber: 1, key: 'red/parts' }
          const { body: done } = await uploadPart(client, 'attachments', part, 'x')
          const parts = [{ partNumber: 1, etag: done.etag }]
          return client.post(`${bucketPath('attachments')}/multipart/complete`, { ...part, parts })
        },
      ]
      for (const write of writes) {
        expect((await write(server.as('edith'))).status).toBeLessThan(300)
        expect((await write(server.as('vic'))).status).toBe(403)
        expect((await write(server.as('olga'))).status).toBe(403)
      }
      // A file cannot be moved to a workspace without edit access.
      expectRefusal(await server.as('edith').patch(`${red}/metadata`, { workspace: 'blue' }), 403)
      const tus = (client: Client) =>
        tusCreate(client, 'attachments', 1, { key: 'red/plan', customMetadata: '{"workspace":"red"}' })
      expect((await tus(server.as('edith'))).status).toBe(201)
      expect((await tus(server.as('vic'))).status).toBe(403)
      const signed = (client: Client) =>
        client.post(`${bucketPath('attachments')}/signed-upload-url`, { key: 'red/plan' })
      expectRefusal(await signed(server.as('vic')), 403)
      const { body } = await signed(server.as('edith'))
      const { status } = await server.anonymous.request('POST', pathOf(body.url), { raw: formOfUpload(file('red')) })
      expect(status).toBe(201)
    })

    test('[RULE-20] a batch deletes only files that the rule allows', async () => {
      await store(server.service, 'attachments', { ...file('red'), key: 'red/big', content: 'x'.repeat(200) })
      const keys = ['red/plan', 'red/big']
      const path = `${bucketPath('attachments')}/delete-batch`
      expect((await server.as('vic').post(path, { keys })).body.deleted).toEqual([])
      expectRefusal(await server.as('vic').delete(red), 403)
      expect((await server.as('edith').post(path, { keys })).body).toEqual({
        deleted: ['red/plan'],
        failed: [{ key: 'red/big', error: 'Access denied' }],
      })
    })

    test('[RULE-20] exists works under not, and with the uploader', async () => {
      for (const user of ['alice', 'bob']) await store(server.as(user), 'square', { key: user, content: user })
      const keys = async (client: Client) =>
        (await client.get(bucketPath('square'))).body.objects?.map(({ key }: { key: string }) => key)
      expect(await keys(server.as('alice'))).toEqual(['alice', 'bob'])
      await server.service.post('/api/db/shared/tables/banned', { user: 'bob' })
      expect(await keys(server.as('bob'))).toEqual([])
      expect(await keys(server.as('alice'))).toEqual(['alice', 'bob'])
      expect((await server.anonymous.get(filePath('square', 'alice'))).status).toBe(200)
      expectRefusal(await server.anonymous.get(filePath('square', 'bob')), 401)
    })
  })

  describe('rooms', () => {
    const room = { namespace: 'workspace', id: 'red' }

    test('[RULE-21] members can join and act, and messages are processed in order while a rule is pending', async () => {
      const socket = await enter(server, 'vic', room)
      socket.send({ type: 'join' })
      expect(socket.begin('inspect')).toBeString()
      const [sync, ...rest] = await socket.until((message) => message.type === 'action_result')
      expect(sync?.type).toBe('sync')
      expect(rest.at(-1)?.result).toBe('seen')
      expect(await socket.act('edit')).toMatchObject({ type: 'action_error', code: 'ACTION_DENIED' })
      const editor = await join(server, 'edith', room)
      expect(await editor.act('edit')).toMatchObject({ result: 'edited' })
      editor.send({ type: 'signal', event: 'shout' })
      expect(await editor.nextOf('error')).toMatchObject({ code: 'SIGNAL_DENIED' })
      editor.send({ type: 'signal', event: 'wave' })
      expect(await socket.nextOf('signal')).toMatchObject({ event: 'wave' })
      socket.close()
      editor.close()
    })

    test('[RULE-21] other users cannot join, and a rule that throws denies', async () => {
      for (const [user, namespace] of [
        ['olga', 'workspace'],
        ['vic', 'failing'],
      ] as const) {
        const socket = await enter(server, user, { namespace, id: 'red' })
        socket.send({ type: 'join' })
        expect(await socket.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
        expect((await socket.closed).code).toBe(4003)
      }
      expect(server.logged()).toContain('a rule that throws')
    })

    test('[RULE-21] a removed member is disconnected with the next token', async () => {
      const socket = await join(server, 'vic', room)
      await server.service.delete(`${members}/vic-red`)
      socket.send({ type: 'auth', token: await server.token('vic') })
      expect(await socket.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
    })

    test('[RULE-21] members can read metadata and summaries', async () => {
      const path = `${summary}${query(room)}`
      expect((await server.as('vic').get(path)).status).toBe(200)
      expect((await server.as('vic').get(`/api/room/metadata${query(room)}`)).status).toBe(200)
      expectRefusal(await server.as('olga').get(path), 403)
      expectRefusal(await server.anonymous.get(path), 401)
      const { body } = await server
        .as('vic')
        .post('/api/room/summaries', { namespace: 'workspace', ids: ['blue', 'red'] })
      expect(body.items.map(({ roomId }: { roomId: string }) => roomId)).toEqual(['red'])
      expect(body.deniedIds).toEqual(['blue'])
    })
  })

  describe('instances', () => {
    const notes = (namespace: string, id: string) => `/api/db/${namespace}/${id}/tables/notes`

    test('[RULE-22] only members can access the instance', async () => {
      for (const namespace of ['workspace', 'own']) {
        expect((await server.as('vic').post(notes(namespace, 'red'), { text: 'x' })).status).toBe(201)
        expect((await server.as('vic').get(notes(namespace, 'red'))).status).toBe(200)
        expectRefusal(await server.as('olga').get(notes(namespace, 'red')), 403)
        expectRefusal(await server.as('vic').get(notes(namespace, 'blue')), 403)
        expectRefusal(await server.anonymous.get(notes(namespace, 'red')), 401)
      }
    })

    test('[RULE-22] the rule can query tables of the instance and of shared', async () => {
      expectRefusal(await server.as('gil').get(notes('workspace', 'green')), 403)
      await server.service.post('/api/db/workspace/green/tables/guests', { user: 'gil' })
      expect((await server.as('gil').get(notes('workspace', 'green'))).status).toBe(200)
      expectRefusal(await server.as('gil').get(notes('workspace', 'red')), 403)
      await server.service.post('/api/db/shared/tables/banned', { user: 'gil' })
      expectRefusal(await server.as('gil').get(notes('workspace', 'green')), 403)
    })

    test('[RULE-22] a rule may be asynchronous, and one that rejects denies', async () => {
      expect((await server.as('ann').post(notes('later', 'ann'), {})).status).toBe(201)
      expectRefusal(await server.as('ann').get(notes('later', 'bob')), 403)
      expectRefusal(await server.as('ann').get(notes('failing', 'x')), 403)
      expectRefusal(await server.anonymous.get(notes('failing', 'x')), 401)
    })

    test('[RULE-22] subscriptions evaluate the rule', async () => {
      const channel = 'dblive:workspace:red:notes'
      const socket = await watch(server.url, { channel, token: await server.token('vic') })
      await server.service.post(notes('workspace', 'red'), { id: 'seen' })
      expect(await socket.expect('db_change')).toMatchObject({ docId: 'seen' })
      const other = await watch(server.url, { channel, token: await server.token('vic'), subscribe: null })
      other.send({ type: 'subscribe', channel: 'dblive:workspace:blue:notes' })
      expect(await other.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
      socket.close()
      other.close()
    })
  })
})
