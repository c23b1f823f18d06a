/** Builds `ctx` of an invocation. Clients are created when they are first used. */
import { createClient, files, records } from 'plinth-client'
import type { CallerContext, Context } from '../config/sections/functions/context.ts'
import type { InvocationContext } from '../engines/hosts/hosts.ts'
import type { CallerRefusals } from './caller-refusals.ts'
import { createEffectNumbers } from './effect-numbers.ts'
import { log } from './log-lines.ts'
import { createMailSender } from './mail-sender.ts'
import type { MailTemplates } from './mail-templates.ts'
import { createKv, createPush, createVector, type Post, type Posts } from './platform-clients.ts'
import { createServerFetch, type SendRequest, type ServerFetchParts } from './server-requests.ts'
import { createTransactionJobs } from './transaction-jobs.ts'

export type PrepareInput = (
  queue: string,
  input: unknown,
) => Promise<{ readonly input: unknown; readonly uniqueKey?: string }>

export interface ContextParts {
  readonly id: string
  readonly given: InvocationContext
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Of the server. */
  readonly url: string
  readonly sendRequest: SendRequest
  readonly outboundFetch: typeof fetch
  /** The input of a job as its queue takes it. Throws `HttpError` 400 where it does not fit. */
  readonly prepareInput: PrepareInput
  readonly mailTemplates: MailTemplates
  /** Notes what the server refuses to `ctx.db`. */
  readonly refusals: CallerRefusals
}

type Client = ReturnType<typeof createClient>

const lazy = <Value>(create: () => Value): (() => Value) => {
  let value: { readonly made: Value } | undefined
  return () => {
    value ??= { made: create() }
    return value.made
  }
}

export type AnyContext = Omit<Context, 'db'> & { readonly db?: CallerContext['db'] | undefined }

export function createContext(parts: ContextParts): AnyContext {
  const { id, given, signal, timeoutMs, url, sendRequest, outboundFetch, mailTemplates, prepareInput, refusals } = parts
  const startedMs = performance.now()
  const effects = createEffectNumbers()
  const clientAs = (as: 'caller' | 'service', onResponse?: ServerFetchParts['onResponse']) =>
    lazy<Client>(() =>
      createClient(url, [records, files], {
        fetch: createServerFetch({ url, as, sendRequest, effects, ...(onResponse && { onResponse }) }),
        // The deadline of the invocation bounds every request, and the server answers without a network.
        timeout: timeoutMs + 1000,
        retries: 0,
      }),
    )
  const asCaller = clientAs('caller', (response) => refusals.note(response))
  const asService = clientAs('service')
  const jobs = createTransactionJobs(given.jobId, effects)
  const databasesOf =
    (client: () => Client): Client['db'] =>
    (...names: []) =>
      jobs.within(client().db(...names)) as ReturnType<Client['db']>
  const post: Post = (path, body) => asService().request('POST', path, { body })
  const posts: Posts = { write: post, read: (path, body) => effects.reading(() => post(path, body)) }
  const logAt = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: object) =>
    log(id, level, message, fields)
  return {
    ...(given.hasCaller ? { db: databasesOf(asCaller) as CallerContext['db'] } : {}),
    service: { db: databasesOf(asService) as CallerContext['db'] },
    auth: given.auth as Context['auth'],
    files: (bucket) => asService().files(bucket),
    kv: (namespace) => createKv(posts, namespace),
    vector: (index) => createVector(posts, index),
    push: createPush(post),
    mail: createMailSender(post, mailTemplates),
    enqueue: async (queue, input, options = {}) => {
      const prepare = async () => ({
        queue,
        ...(await prepareInput(queue, input)),
        ...options,
        ...(options.at && { at: options.at.toISOString() }),
      })
      return jobs.enqueue(prepare) ?? post('/api/functions/jobs', await prepare())
    },
    now: () => new Date(given.nowMs + (performance.now() - startedMs)),
    secrets: given.secrets,
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    signal,
    fetch: ((input: RequestInfo | URL, init?: RequestInit) =>
      outboundFetch(input, {
        ...init,
        signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal,
      })) as typeof fetch,
    idempotencyKey: given.idempotencyKey,
  }
}
