/** `plinth rules`: questions about the rules of a running server. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { createServer, rootKey } from '../harness/server.ts'
import { signUp } from '../harness/users/test-user.ts'

type Auth = { id: string } | null

const commandLine = openCommandLine([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'rules'], 'SIGKILL')
beforeEach(() => writeFileSync(join(commandLine.folder, 'plinth.config.ts'), 'export default {}'))

const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: { type: 'string' }, ownerId: { type: 'string' } },
          access: { read: true, update: (auth: Auth) => auth && { ownerId: auth.id } },
        },
      },
    },
    team: {
      instance: true,
      access: (auth: Auth, id: string) => auth?.id === id,
      tables: { notes: { access: { read: true } } },
    },
  },
} as const

const server = createServer({ config }, engines[0] as (typeof engines)[0])
beforeAll(() => server.open())
afterAll(() => server.close())

const run = (...words: readonly string[]) =>
  commandLine.run([...words, '--url', server.url], { PLINTH_SERVICE_KEY: rootKey })

test('[RULES-EXPLAIN-8] plinth rules explain prints the verdict and the clauses', async () => {
  const person = await signUp(server)
  await server.service.post('/api/db/shared/tables/posts', { id: 'a', title: 'A', ownerId: person.id })
  const own = await run('explain', 'shared', 'posts', 'update', '--as', `user:${person.id}`, '--id', 'a')
  expect([own.code, own.error]).toEqual([0, ''])
  expect(own.out).toStartWith(`200 allowed: update shared.posts a as user:${person.id}\n\nread           true   true\n`)
  expect(own.out).toContain(`update.before  true   ownerId == "${person.id}"  (ownerId: "${person.id}")`)
  expect(own.out).toContain('\nPlan:\n')
  const other = await run('explain', 'shared', 'posts', 'update', '--as', 'claims:{"id":"eve"}', '--id', 'a')
  expect(other.out).toStartWith('403 denied (Access denied): update shared.posts a as these claims\n')
  const anonymous = await run('explain', 'shared', 'posts', 'update', '--id', 'a', '--json')
  expect(JSON.parse(anonymous.out)).toMatchObject({ allowed: false, verdict: 401 })
  const entered = await run('explain', 'team', 'notes', 'list', '--instance', 'eve', '--as', 'claims:{"id":"eve"}')
  expect(entered.out).toStartWith('200 allowed: list team/eve.notes as these claims\n\ninstance  true   true\n')
})

test('[RULES-MATRIX-4] plinth rules matrix prints the cells and the conditions of each table', async () => {
  const all = await run('matrix')
  expect([all.code, all.error]).toEqual([0, ''])
  expect(all.out).toContain(`shared.posts
          anonymous     user          owner         other user    other tenant
  read    always        always        always        always        always
  create  never         never         never         never         never
  update  never         depends       always        never         never
  delete  never         never         never         never         never
  update as user:
    ownerId == auth.id
`)
  const team = await run('matrix', 'team', '--json')
  expect(JSON.parse(team.out).tables.map(({ name }: { name: string }) => name)).toEqual(['notes'])
})

test('[RULES-EXPLAIN-8] an invalid command line names what is wrong', async () => {
  const unknown = await run('explain', 'shared', 'none', 'list')
  expect([unknown.code, unknown.error]).toEqual([1, expect.stringContaining('Table not found')])
  const cases: readonly (readonly [words: readonly string[], message: string])[] = [
    [['explain', 'shared', 'posts'], '`plinth rules explain` needs <namespace> <table> <operation>'],
    [['show'], '"show" is not an action of `plinth rules`'],
    [['explain', 'shared', 'posts', 'list', '--as', 'root'], '--as must be anonymous, user:ID or claims:JSON'],
    [['explain', 'shared', 'posts', 'list', '--row', '{'], '--row must be JSON'],
  ]
  for (const [words, message] of cases) {
    const { code, error } = await run(...words)
    expect([code, error]).toEqual([2, expect.stringContaining(message)])
  }
})
