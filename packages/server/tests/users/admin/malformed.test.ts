/** Property test: malformed requests to the admin endpoints never cause a 500. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { describeServer } from '../../harness/server.ts'

const users = '/api/auth/admin/users'
/** The members of each endpoint, so that most requests fail for their values. */
const known = {
  create: ['email', 'password', 'displayName', 'role'],
  update: ['displayName', 'avatarUrl', 'role', 'emailVisibility', 'disabled', 'metadata', 'appMetadata'],
  import: ['id', 'email', 'password', 'passwordHash', 'displayName', 'avatarUrl', 'role', 'verified', 'metadata'],
  setup: ['token', 'email', 'password', 'displayName'],
  anything: ['plan', 'sub', 'a.b', '', '__proto__', 'constructor'],
}
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.constantFrom('a@b.example', 'x'.repeat(300), '$2b$31$', 'pbkdf2:sha256:1:AA==:AA==', 'http://x', '\ud800', '\0'),
)
const value = fc.oneof(text, fc.jsonValue({ maxDepth: 3 }))
const fields = (of: keyof typeof known) =>
  fc.dictionary(fc.constantFrom(...known[of]), value, { maxKeys: 9, noNullPrototype: true })
const id = fc.oneof(
  fc.constant('known'),
  text.map((part) => encodeURIComponent(part.toWellFormed())),
)

describeServer('malformed admin requests', { config: { databases: { shared: { tables: {} } } } }, (server) => {
  const requests: Readonly<Record<string, fc.Arbitrary<readonly [method: string, path: string, body?: unknown]>>> = {
    create: fields('create').map((body) => ['POST', users, body] as const),
    update: fc.tuple(id, fields('update')).map(([at, body]) => ['PATCH', `${users}/${at}`, body] as const),
    claims: fc.tuple(id, fields('anything')).map(([at, body]) => ['PUT', `${users}/${at}/claims`, body] as const),
    import: fc
      .array(fc.oneof(fields('import'), value), { maxLength: 5 })
      .map((entries) => ['POST', `${users}/import`, { users: entries }] as const),
    setup: fields('setup').map((body) => ['POST', '/api/auth/setup', body] as const),
    list: fc.tuple(text, text, text).map(([limit, cursor, email]) => {
      const query = new URLSearchParams({ limit, cursor, email })
      return ['GET', `${users}?${query}`] as const
    }),
    get: id.map((at) => ['GET', `${users}/${at}`] as const),
  }

  for (const [what, arbitrary] of Object.entries(requests))
    test(`[ERR-7, ADMIN-10, IMPORT-5] ${what} never returns 500`, async () => {
      await server.service.post(`${users}/import`, { users: [{ id: 'known', email: 'known@example.com' }] })
      await fc.assert(
        fc.asyncProperty(arbitrary, async ([method, path, body]) => {
          const options = body === undefined ? {} : { body }
          const { status, text: response } = await server.service.request(method, path, options)
          if (status >= 500) throw new Error(`${method} ${path} returned ${status}: ${response}`)
          expect(response).not.toMatch(/sqlite|SELECT |argon2|\.ts:/i)
        }),
        { numRuns: 150 },
      )
    })
})
