/** Tables with rules that query other tables with `exists`, for tests of memberships. */
import { and, exists, field, not, or } from '../../../src/access/filter.ts'
import { open } from '../config.ts'
import type { TestServer } from '../server.ts'
import type { Message, TestSocket } from '../socket.ts'

export const table = (name: string): string => `/api/db/shared/tables/${name}`
export const channel = 'dblive:shared:docs'
const text = { type: 'string' } as const

type Auth = { readonly id: string; readonly custom: Readonly<Record<string, unknown>> } | null

export const config = {
  databases: {
    shared: {
      tables: {
        docs: {
          schema: { teamId: text, title: text, isOpen: { type: 'boolean' } },
          access: {
            ...open,
            read: (auth: Auth) =>
              auth !== null &&
              or(
                { isOpen: true },
                and(
                  exists('members', { userId: auth.id, teamId: field('teamId') }),
                  not(exists('bans', { userId: auth.id })),
                ),
              ),
          },
        },
        claimed: {
          schema: { teamId: text, title: text },
          access: { ...open, read: (auth: Auth) => ({ teamId: String(auth?.custom.team ?? '') }) },
        },
        tasks: {
          schema: { docId: text },
          access: {
            ...open,
            read: (auth: Auth) =>
              auth !== null &&
              exists(
                'docs',
                and({ id: field('docId') }, exists('members', { userId: auth.id, teamId: field('teamId') })),
              ),
          },
        },
        members: { schema: { userId: text, teamId: text }, access: open },
        bans: { schema: { userId: text }, access: open },
        marks: { schema: {}, access: open },
      },
    },
  },
}

let marks = 0

/** All messages that a socket has received so far, delimited by a marker change of another table. */
export async function receivedMessages(server: TestServer, socket: TestSocket): Promise<Message[]> {
  const id = `mark${++marks}`
  socket.send({ type: 'subscribe', channel: `dblive:shared:marks:${id}` })
  const before = await socket.until(({ type, channel }) => type === 'subscribed' && channel.endsWith(id))
  await server.service.post(table('marks'), { id })
  const after = await socket.until(({ docId }) => docId === id)
  return [...before.slice(0, -1), ...after.slice(0, -1)]
}

export async function clear(server: TestServer): Promise<void> {
  for (const name of ['docs', 'tasks', 'members', 'bans', 'claimed'])
    for (;;) {
      const { body } = await server.service.post(`${table(name)}/batch-by-filter`, { action: 'delete' })
      if (body.processed < 500) break
    }
}
