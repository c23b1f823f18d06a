/**
 * What the types of `functionsFor` accept and refuse of files. The compiler is the test: `tsc` fails on a valid
 * declaration that they refuse, and on an `@ts-expect-error` that is not followed by an error.
 */
import { expect, test } from 'bun:test'
import { defineConfig } from '../../../src/config/define.ts'
import { functionsFor, HttpError } from '../../../src/config/sections/functions/define-functions.ts'

const config = defineConfig({
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } } } } } },
  storage: { buckets: { avatars: {}, documents: {} } },
})
const { before, onChange, webhook } = functionsFor<typeof config>()

export const approve = before('storage.avatars', ['insert', 'update'], ({ row, previous, caller }) => {
  const uploader: string | null = row.uploadedBy
  if (row.size > (previous?.size ?? 0) && uploader === null) throw new HttpError(422, 'too-large', row.key)
  return { ...row, customMetadata: { ...row.customMetadata, approvedFor: caller.kind, type: row.contentType } }
})
export const nothing = before('storage.documents', ['delete'], () => undefined)
export const later = before('storage.avatars', ['insert'], async ({ row }) => row)
export const row = before('shared.posts', ['insert'], ({ row: post }) => ({ ...post, title: post.title }))
export const sizes = onChange(
  'storage.avatars',
  { on: ['insert'], where: { contentType: 'image/png' } },
  ({ after }) => after?.size,
)
export const sent = webhook('storage.documents', { url: 'https://example.com/', secret: 'whsec_', fields: ['key'] })

// @ts-expect-error: there is no such bucket
export const unknown = before('storage.avatar', ['insert'], () => undefined)
// @ts-expect-error: there is no such bucket
export const unknownAfter = onChange('storage.posts', {}, () => undefined)
// @ts-expect-error: there is no such bucket
export const unknownSent = webhook('storage.nothing', { url: 'https://example.com/', secret: 'whsec_' })
// @ts-expect-error: a file has no title
export const field = before('storage.avatars', ['insert'], ({ row: file }) => void file.title)
// @ts-expect-error: the whole file is returned
export const part = before('storage.avatars', ['insert'], () => ({ customMetadata: {} }))
// @ts-expect-error: custom metadata has texts
export const number = before('storage.avatars', ['insert'], ({ row: file }) => ({ ...file, customMetadata: { n: 1 } }))

test('[FN-FILE-10] declarations of files are typed by the buckets of the configuration', () => {
  expect([approve, sizes, sent].map(({ kind, table }) => [kind, table])).toEqual([
    ['before', 'storage.avatars'],
    ['onChange', 'storage.avatars'],
    ['webhook', 'storage.documents'],
  ])
})
