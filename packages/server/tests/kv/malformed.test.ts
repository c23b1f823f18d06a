/** Property test: malformed commands never cause a 5xx, get the common error form, and change nothing. */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { body } from '../harness/records/malformed.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { kvPath, openStore } from '../harness/resources/kv.ts'
import { describeServer } from '../harness/server.ts'

const odd = fc.oneof(
  fc.constantFrom(
    null,
    true,
    0,
    -1,
    59,
    60,
    1.5,
    1e12,
    1e300,
    '',
    'a',
    '\0',
    '\ud800',
    '__proto__',
    '%',
    'x'.repeat(600),
  ),
  fc.jsonValue({ depthSize: 'small' }),
)
/** Commands with valid, invalid and missing members. */
const command = fc.record(
  {
    action: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('get', 'set', 'delete', 'list') },
      { weight: 1, arbitrary: odd },
    ),
    key: odd,
    value: odd,
    ttl: odd,
    prefix: odd,
    limit: odd,
    cursor: odd,
  },
  { requiredKeys: [] },
)

describeServer('malformed commands', { config: { kv: { odd: { writeInterval: 0 } } } }, (server) => {
  const store = openStore(server.service, 'odd')
  beforeAll(async () => {
    expect((await store.set('kept', 1)).status).toBe(200)
  })

  test('[ERR-1, ERR-7, KV-3] random commands are accepted or refused without a change', () =>
    fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 5, arbitrary: command }, { weight: 1, arbitrary: body }), async (sent) => {
        const before = await store.dump()
        const answer = await server.service.post(kvPath('odd'), sent)
        if (answer.status < 400) return
        expect(answer.status).toBeLessThan(500)
        expectRefusal(answer, answer.status)
        expect(await store.dump()).toEqual(before)
      }),
      { numRuns: 400 },
    ))
})
