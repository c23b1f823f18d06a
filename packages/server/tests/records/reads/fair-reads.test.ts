/** Fair scheduling of slow reads, on engines that run them in threads of the server. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { slowReadBytes } from '../../../src/limits/sqlite.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { engines } from '../../harness/engines.ts'
import { createServer } from '../../harness/server.ts'

const notes = '/api/db/shared/tables/notes'
const config = {
  databases: { shared: { tables: { notes: { schema: { body: { type: 'text' } }, access: open } } } },
} as const

describe('fair reads', () => {
  const [embedded] = engines
  if (!embedded) throw new Error('no engine')
  const server = createServer({ config }, embedded)

  beforeAll(async () => {
    await server.open()
    const body = 'lorem ipsum '.repeat(160)
    for (let bytes = 0; bytes < 1.2 * slowReadBytes; bytes += 400 * body.length) {
      const inserts = Array.from({ length: 400 }, () => ({ body }))
      expect((await server.service.post(`${notes}/batch`, { inserts })).status).toBe(200)
    }
  })
  afterAll(() => server.close())

  test('[RES-9] a caller with 200 concurrent slow counts delays another caller by one of them', async () => {
    const ended: string[] = []
    const count = async (user: string, word: string): Promise<number> => {
      const filter = [['body', 'contains', word]]
      const { status } = await server.as(user).get(`${notes}/count${query({ filter })}`)
      ended.push(`${user} ${status}`)
      return status
    }
    const greedy = Array.from({ length: 200 }, (_, n) => count('greedy', `word ${n}`))
    const modest = ['one', 'two', 'three'].map((word) => count('modest', word))
    const statuses = await Promise.all(greedy)
    expect(await Promise.all(modest)).toEqual([200, 200, 200])
    // On a loaded machine the server refuses a part of them as overload.
    expect(new Set(statuses.filter((status) => status !== 503))).toEqual(new Set([200, 429]))
    const lastModest = ended.lastIndexOf('modest 200')
    expect(ended.slice(lastModest).filter((one) => one === 'greedy 200').length).toBeGreaterThan(0)
  })
})
