/** The endpoints of stored secrets, for `plinth secrets` and the dashboard. No response contains a value. */
import { z } from '../../../base/schemas/z.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { secretValueBytesMax } from '../../../limits/functions.ts'
import { functionsReadScope, jobsCommon } from '../jobs/job-endpoints.ts'
import type { SecretStore } from './secret-store.ts'

const ok = z.object({ ok: z.literal(true) })
const base = '/api/functions/secrets'
const common = { ...jobsCommon, isSecret: true } as const

export interface SecretEndpointsDeps {
  readonly store: SecretStore
  /** Called after a change. */
  readonly onChanged: () => Promise<void>
}

export const createSecretEndpoints = ({ store, onChanged }: SecretEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'functions.secrets.list',
    method: 'GET',
    scope: functionsReadScope,
    paths: [base],
    summary: 'List the stored secrets',
    replies: {
      200: {
        description: 'In order of name, without values',
        schema: z.object({ secrets: z.array(z.object({ name: z.string(), updatedAt: z.string() })) }),
      },
    },
    handle: async () => json({ secrets: await store.list() }),
  }),
  endpoint({
    ...common,
    name: 'functions.secrets.set',
    method: 'PUT',
    paths: [`${base}/:name`],
    summary: 'Store a secret',
    description: 'An environment variable of the same name wins.',
    body: z.strictObject({
      value: z.string().meta({ description: `At most ${secretValueBytesMax} bytes of UTF-8` }),
    }),
    replies: { 200: { description: 'Stored', schema: ok } },
    async handle({ params, body }) {
      await store.set(params.name ?? '', body.value)
      await onChanged()
      return json({ ok: true })
    },
  }),
  endpoint({
    ...common,
    name: 'functions.secrets.remove',
    method: 'DELETE',
    paths: [`${base}/:name`],
    summary: 'Remove a stored secret',
    replies: { 200: { description: 'Removed', schema: ok } },
    errors: [404],
    async handle({ params }) {
      if (!(await store.remove(params.name ?? ''))) throw notFound('Secret')
      await onChanged()
      return json({ ok: true })
    },
  }),
]
