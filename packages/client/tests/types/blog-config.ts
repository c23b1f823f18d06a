/** A configuration with every kind of name that the client's types are derived from. */
import { type Auth, and, defineConfig, or, where } from '../../../server/src/config/define.ts'

const owner = (auth: Auth | null) => auth && { authorId: auth.id }
const editor = (auth: Auth | null) => auth?.role === 'editor' || (auth && where('authorId', '==', auth.id))

const config = defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true, max: 200 },
            body: { type: 'text' },
            views: { type: 'number', default: 0 },
            rating: { type: 'number' },
            pinned: { type: 'boolean', default: false },
            status: { type: 'string', enum: ['draft', 'live', 'archived'], default: 'draft' },
            rank: { type: 'number', enum: [1, 2, 3] },
            publishAt: { type: 'datetime' },
            tags: { type: 'json' },
            authorId: { type: 'string', required: true, references: 'people' },
            editor_id: { type: 'string', references: 'people' },
            moderatorNote: { type: 'string' },
            reviewerId: { type: 'string', references: 'people' },
          },
          search: ['title', 'body'],
          hidden: ['moderatorNote', 'reviewerId'],
          access: {
            read: (auth) => (auth ? or({ status: 'live' }, { authorId: auth.id }) : { status: 'live' }),
            insert: owner,
            update: { before: owner, after: editor },
            delete: editor,
          },
        },
        comments: {
          schema: {
            postId: { type: 'string', required: true, references: 'posts' },
            authorId: { type: 'string', required: true, references: 'people' },
            text: { type: 'text', required: true, default: '' },
          },
          access: { read: true, insert: owner, update: editor, delete: (auth) => auth && and({ authorId: auth.id }) },
        },
        people: {
          schema: {
            name: { type: 'string', required: true },
            age: { type: 'number' },
            managerId: { type: 'string', references: 'people' },
            email: { type: 'string' },
            home: { type: 'geo', index: true },
          },
          hidden: ['email'],
          access: { read: true },
        },
        loose: { access: { read: true } },
      },
    },
    workspace: {
      instance: true,
      access: (auth, id) => auth?.custom.workspaces?.includes(id) ?? false,
      tables: { tasks: { schema: { title: { type: 'string', required: true }, done: { type: 'boolean' } } } },
    },
  },
  storage: { buckets: { avatars: { images: true }, documents: {} } },
  rooms: {
    game: {
      actions: {
        async move(room, player, to: { x: number; y: number }) {
          room.shared.at = to
          return { isFree: to.x > 0, by: player.id, at: new Date(0) }
        },
        resign(room, player) {
          room.broadcast('resigned', player.id)
        },
        chat: (_room, _player, text?: string) => text?.length ?? 0,
      },
    },
    lobby: { maxPlayers: 500 },
  },
  broadcasts: { 'typing:*': { subscribe: true }, news: { subscribe: true } },
  kv: { cache: {}, sessions: {} },
  vector: { docs: { dimensions: 3 } },
  sql: { reports: {} },
})

export type Config = typeof config

/** What the type of a function of the server has, for `typeof functions`. */
export interface Functions {
  checkout: { readonly kind: 'rpc'; readonly types?: (input: { items: string[] }) => Promise<{ orderId: string }> }
  ping: { readonly kind: 'rpc'; readonly types?: (input?: undefined) => 'pong' }
  countdown: { readonly kind: 'rpc'; readonly types?: (input: { from: number }) => AsyncGenerator<number> }
  onSignUp: { readonly kind: 'onChange' }
}
