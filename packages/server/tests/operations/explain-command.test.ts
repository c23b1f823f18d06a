/** `plinth explain`: the plan of a query on a running server. */
import { beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { createServer, rootKey } from '../harness/server.ts'

const commandLine = openCommandLine(
  [process.execPath, join(import.meta.dir, '../../src/main.ts'), 'explain'],
  'SIGKILL',
)
beforeEach(() => writeFileSync(join(commandLine.folder, 'plinth.config.ts'), 'export default {}'))

const schema = { title: { type: 'string' }, views: { type: 'number' } } as const
const tables = { posts: { schema, search: ['title'] } } as const
const config = { databases: { shared: { tables }, team: { instance: true, tables } } } as const

for (const engine of engines)
  test(`[DB-EXPLAIN-1] plans are printed with parameters, duration and a suggestion on ${engine.name}`, async () => {
    const server = createServer({ config }, engine)
    await server.open()
    try {
      const run = (...words: readonly string[]) =>
        commandLine.run([...words, '--url', server.url], { PLINTH_SERVICE_KEY: rootKey })
      const list = await run('shared.posts', '--filter', '[["views",">",3]]', '--sort', 'title', '--limit', '7')
      expect([list.code, list.error]).toEqual([0, ''])
      expect(list.out).toMatch(
        /^SELECT [\s\S]+\nParameters: 3, 7\n\nPlan:\n {2}\S[\s\S]+\n\n[\d.]+ ms[^\n]*\nAn index would help: indexes: \[\{'fields':\['title'\]\}\]\n$/,
      )
      const count = await run('team/acme.posts', '--count')
      expect([count.code, count.out]).toEqual([0, expect.stringContaining('count(*)')])
      expect((await run('shared.posts', '--search', 'word')).code).toBe(0)
      const missing = await run('shared.missing')
      expect([missing.code, missing.error]).toEqual([1, expect.stringContaining('not found')])
      const both = await run('shared.posts', '--search', 'word', '--count')
      expect([both.code, both.error]).toEqual([2, expect.stringContaining('--search cannot be combined with --count')])
      expect((await run('posts')).error).toContain('"posts" is not a table such as shared.posts')
    } finally {
      await server.close()
    }
  })
