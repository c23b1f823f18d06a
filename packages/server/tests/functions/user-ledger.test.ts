/** Events of users over kills: each reaches its function once, however often the server is killed. */
import { describe, expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { adminUsers, auth, password } from '../harness/users/accounts.ts'

const usersMax = Number(process.env.PLINTH_LEDGER_USERS ?? 90)
const killsMax = Number(process.env.PLINTH_LEDGER_KILLS ?? 3)

const unlimited = '{ requests: 10_000_000 }'
const configText = `export default {
  databases: { shared: { tables: { ledger: { schema: { entry: { type: 'string' } }, access: {} } } } },
  rateLimits: { auth: ${unlimited}, signup: ${unlimited}, signin: ${unlimited} },
}`
const functionsText = `import { functionsFor } from 'plinth/functions'
const { auth } = functionsFor()
export const keep = auth.onUser(['created', 'deleted', 'disabled'], async ({ event, user }, ctx) => {
  await ctx.service.db('shared').ledger.insert({ entry: user.email + ' ' + event })
})
`

const emailOf = (at: number): string => `u${at}@example.org`

/** Creates a user on one of the paths; then disables every third and deletes every third. */
async function live({ service, anonymous }: SpawnedServer, at: number): Promise<void> {
  const email = emailOf(at)
  if (at % 3 === 0) await service.post(adminUsers, { email, password })
  else if (at % 3 === 1) await service.post(`${adminUsers}/import`, { users: [{ email }] })
  else await anonymous.post(`${auth}/signup`, { email, password })
  const [user] = (await service.get(`${adminUsers}?email=${email}`)).body.users
  if (Math.floor(at / 3) % 3 === 1) await service.patch(`${adminUsers}/${user.id}`, { disabled: true })
  if (Math.floor(at / 3) % 3 === 2) await service.delete(`${adminUsers}/${user.id}`)
}

async function ledgerOf({ service }: SpawnedServer): Promise<readonly string[]> {
  const { body } = await service.get('/api/db/shared/tables/ledger?limit=1000&sort=id:asc')
  expect(body.cursor ?? null).toBeNull()
  return body.items.map(({ entry }: { entry: string }) => entry)
}

const unfinished = async ({ service }: SpawnedServer): Promise<number> => {
  const pages = ['waiting', 'running', 'failed'].map((status) => service.get(`/api/functions/jobs?status=${status}`))
  return (await Promise.all(pages)).reduce((sum, { body }) => sum + body.items.length, 0)
}

for (const engine of engines)
  describe(`the ledger of users on ${engine.name}`, () => {
    test(
      '[FN-AUTH-12, FN-AUTH-13] each event reaches the function once, in order, over kills of the server',
      async () => {
        const server = await spawnServer(configText, engine, { files: { 'functions/index.ts': functionsText } })
        try {
          let next = 0
          for (let kill = 0; kill <= killsMax; kill++) {
            const until = Math.ceil((usersMax * (kill + 1)) / (killsMax + 1))
            const writers = Array.from({ length: 6 }, async () => {
              // A change whose answer is lost may have happened or not: the ledger must agree with the users.
              while (next < until) await live(server, next++).catch(() => null)
            })
            if (kill === killsMax) await Promise.all(writers)
            else {
              while (next < until - 4) await new Promise((resolve) => setTimeout(resolve, 1))
              await server.kill()
              await Promise.all(writers)
              await server.start()
            }
          }
          // Events are dispatched in their order: with that of a later user, all have become jobs.
          await live(server, 3 * Math.ceil(usersMax / 3))
          const last = `${emailOf(3 * Math.ceil(usersMax / 3))} created`
          while (!(await ledgerOf(server)).includes(last) || (await unfinished(server)) > 0)
            await new Promise((resolve) => setTimeout(resolve, 20))
          const ledger = await ledgerOf(server)
          expect(new Set(ledger).size).toBe(ledger.length)
          const { body } = await server.service.get(`${adminUsers}?limit=1000`)
          const existing = new Map<string, boolean>(
            body.users.map(({ email, disabled }: { email: string; disabled: boolean }) => [email, disabled]),
          )
          const created = ledger.filter((entry) => entry.endsWith(' created')).map((entry) => entry.split(' ')[0] ?? '')
          const expected = created.flatMap((email) => {
            const disabled = existing.get(email)
            const end = disabled === undefined ? ['deleted'] : disabled ? ['disabled'] : []
            return ['created', ...end].map((event) => `${email} ${event}`)
          })
          expect([...ledger].sort()).toEqual(expected.sort())
          expect(created).toEqual(expect.arrayContaining([...existing.keys()]))
          expect(created.length).toBeGreaterThan(usersMax / 2)
          for (const email of created)
            expect(ledger.filter((entry) => entry.startsWith(`${email} `))[0]).toBe(`${email} created`)
        } finally {
          await server.remove()
        }
      },
      killsMax * 60_000 + usersMax * 1000 + 60_000,
    )
  })
