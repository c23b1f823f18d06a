/** PocketBase with posts, their authors and comments, which are inserted by SQL into its file. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { type CreateCollection, openPocketBase } from '../setup/pocketbase.ts'
import type { BaselineProcess } from '../setup/processes.ts'
import { type Counts, rowsOf } from './data.ts'

const text = (name: string): object => ({ name, type: 'text' })
const number = (name: string): object => ({ name, type: 'number' })
const relation = (name: string, collectionId: string): object => ({
  name,
  type: 'relation',
  collectionId,
  maxSelect: 1,
})

async function createCollections(create: CreateCollection): Promise<void> {
  const authors = await create({ name: 'authors', fields: [text('name'), text('bio')] })
  const posts = await create({
    name: 'posts',
    fields: [text('title'), text('body'), text('topic'), number('rank'), relation('authorId', authors)],
    indexes: ['CREATE INDEX idx_posts_topic ON posts (topic, rank)'],
  })
  await create({
    name: 'comments',
    fields: [text('text'), number('rank'), relation('postId', posts)],
    indexes: ['CREATE INDEX idx_comments_post ON comments (postId, rank)'],
  })
}

function insertRows(folder: string, counts: Counts): void {
  const database = new Database(join(folder, 'data/data.db'))
  const { orders: _, places: __, ...tables } = rowsOf(counts)
  for (const [table, { count, at }] of Object.entries(tables)) {
    const names = Object.keys(at(0))
    const insert = database.prepare(
      `INSERT INTO ${table} (${names.map((name) => `"${name}"`)}) VALUES (${names.map(() => '?')})`,
    )
    database.transaction(() => {
      for (let row = 0; row < count; row++) insert.run(...(Object.values(at(row)) as (string | number)[]))
    })()
  }
  database.run('ANALYZE')
  database.close()
}

export const openFilled = (program: string, folder: string, counts: Counts): Promise<BaselineProcess> =>
  openPocketBase({ program, folder, create: createCollections, fill: () => insertRows(folder, counts) })
