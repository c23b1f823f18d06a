/**
 * The types of `plinth/testing`. They import nothing of the server, whose declarations are not published.
 */
import type { Client } from 'plinth-client'

export type Reply = (request: Request) => Response | Promise<Response>

/** A mail that would have been sent. */
export interface CapturedMail {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
}

/** A push message that would have been sent, with its recipient: a user, a topic or a token. */
export interface CapturedPush {
  readonly userId?: string
  readonly topic?: string
  readonly token?: string
  readonly title: string
  readonly body: string
  readonly [field: string]: unknown
}

/** An attempt to deliver a webhook. */
export interface CapturedWebhook {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Exactly as sent, for the verification of its signature. */
  readonly body: string
  /** `type`, `timestamp`, `data` and `previous` of the body. */
  readonly event: { readonly type: string; readonly data: unknown; readonly [field: string]: unknown }
}

export interface TestUser {
  /** Default: the account of the email, else a new id. */
  readonly id?: string
  /** Creates an account, unless there is one, with this verified address. */
  readonly email?: string
  /** Default `user`. */
  readonly role?: string
  /** What rules see as `auth.custom`, as an administrator sets it; `auth.claims` of the functions adds to it. */
  readonly claims?: object
}

export interface ProjectOptions {
  /** The configuration, or the path of its file. Default `plinth.config.ts` of the current folder. */
  readonly config?: unknown
  /** Path of the functions folder; null for none. Default: the one of the project. */
  readonly functions?: string | URL | null
}

export interface TestServerOptions extends ProjectOptions {
  /** Where the clock starts. Default: the present. It moves only by `advance`. */
  readonly now?: Date
  /** Secrets of the functions, beside the environment variables. */
  readonly secrets?: Readonly<Record<string, string>>
  /** Receives the lines of the log; warnings and errors go to standard error by default. */
  readonly log?: (line: string) => void
}

/** `Functions` is `typeof` the module of the functions; it types `call`. */
export interface TestServer<Config = unknown, Functions = unknown> {
  readonly url: string
  /** With the permissions of a service key. */
  readonly client: Client<Config, Functions>
  /** A client signed in as that user; null for an anonymous one. */
  as(user: TestUser | null): Promise<Client<Config, Functions>>
  now(): Date
  /** Moves the clock, such as by `'1d'`, and runs in order what becomes due: jobs, retries, schedules. */
  advance(by: string): Promise<void>
  /** Until no job is due. Jobs for a later time wait for `advance`. */
  settled(): Promise<void>
  readonly mail: readonly CapturedMail[]
  readonly pushes: readonly CapturedPush[]
  readonly webhooks: readonly CapturedWebhook[]
  /** Replies to `ctx.fetch` of functions, and to webhooks, which are accepted otherwise. The last reply added wins. */
  readonly fetch: { on(url: string | RegExp, reply: Reply): void }
  close(): Promise<void>
}
