/** Builds `ctx` of an invocation. Clients and the signal are created when they are first used; few functions do. */
import { createClient, files, records } from 'plinth-client'
import type { CallerContext, Context, EnqueueOptions } from '../config/sections/functions/context.ts'
import type { InvocationContext } from '../engines/hosts/hosts.ts'
import type { CallerRefusals } from './caller-refusals.ts'
import { createEffectNumbers } from './effect-numbers.ts'
import { log } from './log-lines.ts'
import { createMailSender } from './mail-sender.ts'
import type { MailTemplates } from './mail-templates.ts'
import { createKv, createPush, createVector, type Post, type Posts } from './platform-clients.ts'
import { createSender, createServerFetch, type ServerFetchParts } from './server-requests.ts'
import { createTransactionJobs } from './transaction-jobs.ts'

export type PrepareInput = (
  queue: string,
  input: unknown,
) => Promise<{ readonly input: unknown; readonly uniqueKey?: string }>

export interface ContextParts {
  readonly id: string
  readonly given: InvocationContext
  readonly signal: () => AbortSignal
  readonly timeoutMs: number
  /** Of the server. */
  readonly url: string
  readonly outboundFetch: typeof fetch
  /** The input of a job as its queue takes it. Throws `HttpError` 400 where it does not fit. */
  readonly prepareInput: PrepareInput
  readonly mailTemplates: MailTemplates
  /** Notes what the server refuses to `ctx.db`. */
  readonly refusals: CallerRefusals
}

type Client = ReturnType<typeof createClient>

export const lazy = <Value>(create: () => Value): (() => Value) => {
  let value: { readonly made: Value } | undefined
  return () => {
    value ??= { made: create() }
    return value.made
  }
}

export type AnyContext = Omit<Context, 'db'> & { readonly db?: CallerContext['db'] | undefined }

/** The parts of `ctx` that send requests to the server. */
function createClients(parts: ContextParts) {
  const { id, given, timeoutMs, url, mailTemplates, prepareInput, refusals } = parts
  const sendRequest = createSender(id)
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
  const databaseOf = (client: () => Client, names: []): ReturnType<Client['db']> => jobs.within(client().db(...names))
  const post: Post = (path, body) => asService().request('POST', path, { body })
  const posts: Posts = { write: post, read: (path, body) => effects.reading(() => post(path, body)) }
  return {
    databaseAsCaller: (names: []) => databaseOf(asCaller, names),
    databaseAsService: (names: []) => databaseOf(asService, names),
    files: (bucket: string) => asService().files(bucket),
    kv: (namespace: string) => createKv(posts, namespace),
    vector: (index: string) => createVector(posts, index),
    push: createPush(post),
    mail: createMailSender(post, mailTemplates),
    async enqueue(queue: string, input: unknown, options: EnqueueOptions = {}): Promise<{ jobId: string }> {
      const prepare = async () => ({
        queue,
        ...(await prepareInput(queue, input)),
        ...options,
        ...(options.at && { at: options.at.toISOString() }),
      })
      return jobs.enqueue(prepare) ?? post('/api/functions/jobs', await prepare())
    },
  }
}

export function createContext(parts: ContextParts): AnyContext {
  const { id, given, signal, outboundFetch } = parts
  const startedMs = performance.now()
  const clients = lazy(() => createClients(parts))
  const logAt = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: object) =>
    log(id, level, message, fields)
  // Own members, so that code may copy `ctx`.
  return {
    ...(given.callerKind !== null && {
      db: ((...names: []) => clients().databaseAsCaller(names)) as CallerContext['db'],
    }),
    service: { db: ((...names: []) => clients().databaseAsService(names)) as CallerContext['db'] },
    auth: given.auth as Context['auth'],
    files: (bucket) => clients().files(bucket),
    kv: (namespace) => clients().kv(namespace),
    vector: (index) => clients().vector(index),
    get push() {
      return clients().push
    },
    get mail() {
      return clients().mail
    },
    enqueue: (queue, input, options) => clients().enqueue(queue, input, options),
    now: () => new Date(given.nowMs + (performance.now() - startedMs)),
    secrets: given.secrets,
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    get signal() {
      return signal()
    },
    fetch: ((input: RequestInfo | URL, init?: RequestInit) =>
      outboundFetch(input, {
        ...init,
        signal: init?.signal ? AbortSignal.any([signal(), init.signal]) : signal(),
      })) as typeof fetch,
    idempotencyKey: given.idempotencyKey,
  }
}
