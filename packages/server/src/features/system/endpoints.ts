/** The HTTP surface of the system feature, as a table, and the few lines behind each entry. */
import { z } from 'zod'
import type { Caller } from '../../access/caller.ts'
import { permitsScope } from '../../access/service-keys.ts'
import type { Clock } from '../../base/clock.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Config } from '../../config/config.ts'
import { authenticationRequired, notFound, unavailable } from '../../errors.ts'
import { type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import { passwordCharsMax } from '../../limits/api.ts'
import { createHomeEndpoint, type HomeParts } from './home.ts'
import { describeSchema, type SchemaDescription } from './schema.ts'

/** The parts of the config that are told. Asked for at each request, since a development reload replaces the config. */
export type SystemConfig = Pick<Config, 'mode' | 'namespaces' | 'schemaEndpoint' | 'captcha' | 'auth' | 'push'>

export interface SystemParts extends Omit<HomeParts, 'maySeeSchema'> {
  readonly config: () => SystemConfig
  readonly clock: Clock
  /** By engine, why it cannot do its work, for an operator; null where it can. A failure counts as a fault of `sql`. */
  readonly findFaults: () => Promise<EngineFaults>
  /** Everything counted so far, in the text format of Prometheus. */
  readonly metrics: () => string | Promise<string>
  /** The OpenAPI document of every endpoint; with the tables and fields of a schema, or with null naming none. */
  readonly openApi: (schema: SchemaDescription | null) => object
  /** The HTML page that shows the document. */
  readonly docsPage: string
  /** Its policy, as far as only headers can say it. */
  readonly docsPageHeaders: Readonly<Record<string, string>>
}

const engineNames = ['sql', 'blobs', 'cluster'] as const
export type EngineFaults = Readonly<Record<(typeof engineNames)[number], string | null>>

const tag = 'System'
const healthScope = 'system:health:*:read'
const schemaScope = 'schema:endpoint:*:read'
const metricsScope = 'system:metrics:*:read'

export function createSystemEndpoints(parts: SystemParts): readonly Endpoint[] {
  const { config, metrics, docsPage, docsPageHeaders } = parts
  const schemaText = perConfig(config, ({ namespaces }) => JSON.stringify(describeSchema(namespaces)))
  const openApiText = perConfig(config, ({ namespaces }) => JSON.stringify(parts.openApi(describeSchema(namespaces))))
  const bareOpenApiText = perConfig(config, () => JSON.stringify(parts.openApi(null)))

  return [
    createHomeEndpoint({ ...parts, maySeeSchema }),
    endpoint({
      name: 'system.health',
      allowsUnknownQuery: true,
      method: 'GET',
      paths: ['/api/health'],
      tag,
      summary: 'Whether the server takes requests',
      description:
        '503 while it drains, or while an engine is away or a write to it fails. No credentials are refused. A service ' +
        'key with the scope `system:health:*:read` also gets the state of each engine and the reason of a fault. Query ' +
        'parameters change nothing, so that monitors may append one against caches.',
      credentials: 'public',
      ignoresCredentials: true,
      rateLimit: null,
      replies: { 200: { description: 'It does', schema: healthSchema } },
      errors: [503],
      handle: ({ caller }) => health(parts, caller),
    }),
    endpoint({
      name: 'system.config',
      method: 'GET',
      paths: ['/api/config'],
      tag,
      summary: 'What a client needs to know before anybody has signed in',
      credentials: 'public',
      rateLimit: 'global',
      replies: { 200: { description: 'Public configuration', schema: clientConfigSchema } },
      handle: () => json(describeClientConfig(config())),
    }),
    endpoint({
      name: 'system.schema',
      method: 'GET',
      paths: ['/api/schema'],
      tag,
      summary: 'Tables and their fields',
      description:
        'Governed by `api.schemaEndpoint`: absent, public, or for users and service keys. Never shows access rules or hidden fields.',
      credentials: 'rules',
      scope: () => schemaScope,
      rateLimit: 'global',
      replies: { 200: { description: 'The tables', schema: schemaSchema } },
      errors: [404],
      handle({ caller }) {
        const mode = config().schemaEndpoint
        if (mode === false) throw notFound('Schema')
        if (!maySeeSchema(mode, caller)) throw authenticationRequired()
        return jsonText(schemaText())
      },
    }),
    endpoint({
      name: 'system.openapi',
      method: 'GET',
      paths: ['/openapi.json'],
      tag,
      summary: 'This API as an OpenAPI document',
      description: 'Names tables and fields only to those whom `/api/schema` would show them.',
      credentials: 'public',
      rateLimit: 'global',
      replies: { 200: { description: 'OpenAPI 3.1', schema: z.record(z.string(), z.unknown()) } },
      handle({ caller }) {
        const showsSchema = maySeeSchema(config().schemaEndpoint, caller)
        return jsonText(showsSchema ? openApiText() : bareOpenApiText())
      },
    }),
    endpoint({
      name: 'system.docs',
      allowsUnknownQuery: true,
      method: 'GET',
      paths: ['/docs'],
      tag,
      summary: 'The OpenAPI document as a page',
      credentials: 'public',
      rateLimit: 'global',
      replies: { 200: { description: 'HTML' } },
      handle: () => ({
        status: 200,
        text: docsPage,
        contentType: 'text/html; charset=utf-8',
        headers: docsPageHeaders,
      }),
    }),
    endpoint({
      name: 'system.metrics',
      method: 'GET',
      paths: ['/metrics'],
      tag,
      summary: 'Counters for Prometheus',
      credentials: 'service',
      scope: () => metricsScope,
      rateLimit: null,
      replies: { 200: { description: 'Prometheus text format' } },
      handle: async () => ({
        status: 200,
        text: await metrics(),
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
      }),
    }),
  ]
}

const engineState = z.enum(['ok', 'unavailable'])
const healthSchema = z.object({
  status: z.enum(['ok', 'unavailable']),
  version: z.string(),
  timestamp: z.iso.datetime(),
  engines: z.object({ sql: engineState, blobs: engineState, cluster: engineState }).optional(),
  reason: z.string().optional(),
})

const clientConfigSchema = z.object({
  captcha: z.object({ siteKey: z.string() }).nullable(),
  auth: z.object({
    signup: z.boolean(),
    anonymous: z.boolean(),
    passkeys: z.boolean(),
    providers: z.array(z.string()),
    passwordPolicy: z.object({ minLength: z.int(), maxLength: z.int() }),
  }),
  push: z.object({ vapidPublicKey: z.string().nullable() }),
})

const schemaSchema = z.object({
  tables: z.record(
    z.string(),
    z.object({
      namespace: z.string(),
      fields: z.record(z.string(), z.looseObject({ type: z.string(), required: z.boolean(), unique: z.boolean() })),
      search: z.array(z.string()),
      indexes: z.array(z.object({ fields: z.array(z.string()), unique: z.boolean() })),
    }),
  ),
})

/** Of each engine whether it works, and the reasons of those that do not, which name files and hosts. */
function describeEngines(faults: EngineFaults) {
  const engines = Object.fromEntries(engineNames.map((name) => [name, faults[name] === null ? 'ok' : 'unavailable']))
  const reasons = engineNames.flatMap((name) => (faults[name] === null ? [] : [`${name}: ${faults[name]}`]))
  return { engines, ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }) }
}

/** An unavailable server says so both ways: as a health report and as a refusal like any other. */
async function health({ findFaults, version, clock }: SystemParts, caller: Caller): Promise<Reply> {
  const faults = await findFaults().catch(
    (error: unknown): EngineFaults => ({ sql: String(error), blobs: null, cluster: null }),
  )
  const maySeeEngines = caller.kind === 'service' && permitsScope(caller.scopes, healthScope)
  const report = {
    version,
    timestamp: formatDatetime(clock.now()),
    ...(maySeeEngines ? describeEngines(faults) : {}),
  }
  if (engineNames.every((name) => faults[name] === null)) return json({ status: 'ok', ...report })
  const refusal = unavailable()
  return json({ ...refusal.body(), status: 'unavailable', ...report }, refusal.status, refusal.headers)
}

/** Nothing that follows from a secret may ever stand here: the answer is public. */
const describeClientConfig = ({ captcha, auth, push }: SystemConfig): z.infer<typeof clientConfigSchema> => ({
  captcha: captcha && { siteKey: captcha.siteKey },
  auth: {
    signup: auth.signup,
    anonymous: auth.anonymous,
    passkeys: auth.passkeys !== null,
    providers: Object.keys(auth.providers),
    passwordPolicy: { minLength: auth.passwordCharsMin, maxLength: passwordCharsMax },
  },
  push: { vapidPublicKey: push.vapid?.publicKey ?? null },
})

function maySeeSchema(mode: SystemConfig['schemaEndpoint'], caller: Caller): boolean {
  if (mode === false) return false
  if (caller.kind === 'service') return permitsScope(caller.scopes, schemaScope)
  return mode === true || caller.kind === 'user'
}

/** Builds once for each loaded config: a reload brings a new object, and the old text goes with the old one. */
function perConfig<T>(config: () => SystemConfig, build: (config: SystemConfig) => T): () => T {
  let last: { readonly of: SystemConfig; readonly built: T } | null = null
  return () => {
    const current = config()
    if (last?.of !== current) last = { of: current, built: build(current) }
    return last.built
  }
}
