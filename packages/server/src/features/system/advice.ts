/** The endpoint of what an operator should look at: one list, computed at most once a minute. */

import type { Clock } from '../../base/clock.ts'
import { createSingleFlight } from '../../base/concurrency/single-flight.ts'
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { adviceCachedMs, adviceMax } from '../../limits/dashboard.ts'

const severities = ['high', 'medium', 'low'] as const

const adviceSchema = z.object({
  id: z.string().meta({ description: 'The same for the same advice, such as `open-write:shared.posts`' }),
  severity: z.enum(severities),
  title: z.string(),
  where: z.string(),
  why: z.string(),
  fix: z.string(),
  code: z.string().nullable().meta({ description: 'To copy' }),
  link: z.string().nullable().meta({ description: 'A path of the dashboard' }),
})

export type Advice = z.output<typeof adviceSchema>

export interface AdviceParts {
  /** Must be bounded, and must not block the event loop. */
  readonly advise: () => Promise<readonly Advice[]>
  readonly clock: Clock
}

interface Checked {
  readonly atMs: number
  readonly items: readonly Advice[]
}

export function createAdviceEndpoint({ advise, clock }: AdviceParts): Endpoint {
  const checking = createSingleFlight<Checked>()
  let last: Checked | null = null

  async function check(): Promise<Checked> {
    const items = [...(await advise())].sort(
      (one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity),
    )
    last = { atMs: clock.now(), items: items.slice(0, adviceMax) }
    return last
  }

  return endpoint({
    name: 'system.advice',
    method: 'GET',
    paths: ['/api/advice'],
    tag: 'System',
    summary: 'List what an operator should look at, the most severe first',
    description:
      'Open rules, missing, redundant and unused indexes, slow statements and functions, expiring keys and secrets, backups, clocks, disk space and settings. Computed at most once a minute.',
    credentials: 'service',
    scope: () => 'system:advice:*:read',
    rateLimit: 'global',
    replies: {
      200: {
        description: 'The advice, and when it was computed',
        schema: z.object({ items: z.array(adviceSchema), checkedAt: z.iso.datetime() }),
      },
    },
    async handle() {
      const isFresh = last !== null && clock.now() - last.atMs < adviceCachedMs
      const { items, atMs } = isFresh && last ? last : await checking.run('', check)
      return json({ items, checkedAt: formatDatetime(atMs) })
    },
  })
}
