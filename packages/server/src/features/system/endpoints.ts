/** HTTP endpoints of the system feature: health, public configuration, schema, OpenAPI, documentation and metrics. */

import type { Caller } from '../../access/caller.ts'
import { permitsScope } from '../../access/service-keys.ts'
import type { Clock } from '../../base/clock.ts'
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Config } from '../../config/config.ts'
import { authenticationRequired, notFound, unavailable } from '../../errors.ts'
import { type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import type { FunctionOutline } from '../../http/pages/openapi-functions.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import { passwordCharsMax } from '../../limits/api.ts'
import { createHomeEndpoint, type HomeParts } from './home.ts'
import { describeSchema, type SchemaDescription } from './schema.ts'

/**
 * The parts of the configuration that endpoints expose. Read for each request, since a development reload replaces the
 * configuration.
 */
export type SystemConfig = Pick<
  Config,
  | 'mode'
  | 'namespaces'
  | 'buckets'
  | 'rooms'
  | 'kv'
  | 'sql'
  | 'vector'
  | 'schemaEndpoint'
  | 'captcha'
  | 'dashboard'
  | 'auth'
  | 'push'
>

export interface SystemParts extends Omit<HomeParts, 'maySeeSchema'> {
  readonly config: () => SystemConfig
  readonly clock: Clock
  /** Faults by engine, for operators; null for a working engine. A rejection counts as a fault of `sql`. */
  readonly findFaults: () => Promise<EngineFaults>
  /** All metrics in the Prometheus text format. */
  readonly metrics: () => string | Promise<string>
  /** Loads the code that describes all endpoints: most servers are never asked to. */
  readonly loadOpenApi: () => Promise<DescribeApi>
  /** The functions of the application that callers can invoke; another list after each load of its code. */
  readonly functions: () => readonly FunctionOutline[]
  /** Loads the HTML page that renders the document, and its security headers. */
  readonly loadDocsPage: () => Promise<{
    readonly docsPage: string
    readonly docsPageHeaders: Readonly<Record<string, string>>
  }>
}

/** The OpenAPI document of all endpoints; with the tables and fields of a schema, or without any for null. */
export type DescribeApi = (schema: SchemaDescription | null, functions: readonly FunctionOutline[]) => object

const engineNames = ['sql', 'blobs', 'cluster'] as const
export type EngineFaults = Readonly<Record<(typeof engineNames)[number], string | null>>

const tag = 'System'
const healthScope = 'system:health:*:read'
const schemaScope = 'schema:endpoint:*:read'
const metricsScope = 'system:metrics:*:read'

export function createSystemEndpoints(parts: SystemParts): readonly Endpoint[] {
  const { config, metrics, loadOpenApi, loadDocsPage } = parts
  const textFor = (isService: boolean, build: (config: SystemConfig, shown: readonly FunctionOutline[]) => object) =>
    perLoad(config, parts.functions, (current, functions) => {
      const shown = functions.filter((one) => isService || one.kind === 'http' || !one.isInternal)
      return JSON.stringify(build(current, shown))
    })
  const bothTexts = (build: Parameters<typeof textFor>[1]) => {
    const [forService, forOthers] = [textFor(true, build), textFor(false, build)]
    return ({ kind }: Caller): string => (kind === 'service' ? forService() : forOthers())
  }
  const schemaText = bothTexts(describeSchema)
  const administratorSchemaText = textFor(true, (current, shown) => describeSchema(current, shown, true))
  const createOpenApiTexts = (describe: DescribeApi) => ({
    complete: bothTexts((current, shown) => describe(describeSchema(current, shown), shown)),
    bare: textFor(false, () => describe(null, [])),
  })
  let openApiTexts: ReturnType<typeof createOpenApiTexts> | null = null

  return [
    createHomeEndpoint({ ...parts, maySeeSchema }),
    endpoint({
      name: 'system.health',
      allowsUnknownQuery: true,
      method: 'GET',
      paths: ['/api/health'],
      tag,
      summary: 'Check server health',
      description:
        '503 while the server drains, or while an engine is unavailable or rejects writes. Credentials are never rejected. A service ' +
        'key with the scope `system:health:*:read` also gets the state of each engine and the reason of each fault. Query ' +
        'parameters are ignored, so that monitors can append one to bypass caches.',
      credentials: 'public',
      ignoresCredentials: true,
      rateLimit: null,
      replies: { 200: { description: 'The server is healthy', schema: healthSchema } },
      errors: [503],
      handle: ({ caller }) => health(parts, caller),
    }),
    endpoint({
      name: 'system.config',
      method: 'GET',
      paths: ['/api/config'],
      tag,
      summary: 'Get the public client configuration',
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
      summary: 'Get the schema of tables, namespaces, buckets, rooms and functions',
      description:
        'For generators of types. Depending on `api.schemaEndpoint` disabled, public, or for users and service keys. Never contains access rules, and hidden fields only for administrators of the dashboard, who always see it; functions that only service keys may call are described to service keys alone.',
      credentials: 'rules',
      scope: () => schemaScope,
      rateLimit: 'global',
      replies: { 200: { description: 'The schema', schema: schemaSchema } },
      errors: [404],
      handle({ caller }) {
        const mode = config().schemaEndpoint
        // The dashboard shows all tables, whether or not others may generate types.
        if (caller.kind === 'service' && caller.admin) return jsonText(administratorSchemaText())
        if (mode === false) throw notFound('Schema')
        if (!maySeeSchema(mode, caller)) throw authenticationRequired()
        return jsonText(schemaText(caller))
      },
    }),
    endpoint({
      name: 'system.openapi',
      method: 'GET',
      paths: ['/openapi.json'],
      tag,
      summary: 'Get the OpenAPI document',
      description: 'Contains tables, fields and functions only if the caller may read `/api/schema`.',
      credentials: 'public',
      rateLimit: 'global',
      replies: { 200: { description: 'OpenAPI 3.1', schema: z.record(z.string(), z.unknown()) } },
      async handle({ caller }) {
        openApiTexts ??= createOpenApiTexts(await loadOpenApi())
        const showsSchema = maySeeSchema(config().schemaEndpoint, caller)
        return jsonText(showsSchema ? openApiTexts.complete(caller) : openApiTexts.bare())
      },
    }),
    endpoint({
      name: 'system.docs',
      allowsUnknownQuery: true,
      method: 'GET',
      paths: ['/docs'],
      tag,
      summary: 'Read the API documentation',
      credentials: 'public',
      rateLimit: 'global',
      replies: { 200: { description: 'HTML' } },
      async handle() {
        const { docsPage, docsPageHeaders } = await loadDocsPage()
        return { status: 200, text: docsPage, contentType: 'text/html; charset=utf-8', headers: docsPageHeaders }
      },
    }),
    endpoint({
      name: 'system.metrics',
      method: 'GET',
      paths: ['/metrics'],
      tag,
      summary: 'Get Prometheus metrics',
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
      name: z.string(),
      schemaless: z.boolean(),
      fields: z.record(z.string(), z.looseObject({ type: z.string(), required: z.boolean(), unique: z.boolean() })),
      search: z.array(z.string()),
      searchOptions: z
        .object({
          language: z.literal('simple'),
          typos: z.boolean(),
          prefix: z.boolean(),
          substring: z.boolean(),
          weights: z.record(z.string(), z.number()),
        })
        .optional(),
      indexes: z.array(z.object({ fields: z.array(z.string()), unique: z.boolean() })),
    }),
  ),
  namespaces: z.record(z.string(), z.object({ instance: z.boolean() })),
  buckets: z.array(z.string()),
  rooms: z.record(z.string(), z.object({ actions: z.array(z.string()) })),
  functions: z.record(
    z.string(),
    z.object({
      input: z.record(z.string(), z.unknown()).nullable(),
      output: z.record(z.string(), z.unknown()).nullable(),
      streams: z.boolean(),
    }),
  ),
})

/** The state of each engine, and the reasons of faults, which may contain file and host names. */
function describeEngines(faults: EngineFaults) {
  const engines = Object.fromEntries(engineNames.map((name) => [name, faults[name] === null ? 'ok' : 'unavailable']))
  const reasons = engineNames.flatMap((name) => (faults[name] === null ? [] : [`${name}: ${faults[name]}`]))
  return { engines, ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }) }
}

/** An unavailable server returns both a health report and a regular error body. */
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
  const failure = unavailable()
  return json({ ...failure.body(), status: 'unavailable', ...report }, failure.status, failure.headers)
}

/** The response is public and must not contain anything derived from a secret. */
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

type Functions = readonly FunctionOutline[]

/** Caches a value per loaded configuration and code of functions; a reload replaces them. */
function perLoad<T>(
  config: () => SystemConfig,
  functions: () => Functions,
  build: (config: SystemConfig, functions: Functions) => T,
): () => T {
  let last: { readonly of: SystemConfig; readonly and: Functions; readonly built: T } | null = null
  return () => {
    const [current, loaded] = [config(), functions()]
    if (last?.of !== current || last.and !== loaded) last = { of: current, and: loaded, built: build(current, loaded) }
    return last.built
  }
}
