/**
 * What a run about users needs: a server with rows to read, people who have signed up through its API, the baseline on
 * a copy of the same data, and two load generators, since reads and sign-ins are to run at once.
 */
import { join } from 'node:path'
import type { LoadRequest } from '../load/load-requests.ts'
import { clients, post } from '../scenarios.ts'
import { copyFolder } from '../setup/folders.ts'
import {
  type BaselineProcess,
  type LoadProcess,
  type ServerProcess,
  startLoad,
  startServer,
  startUsersBaseline,
} from '../setup/processes.ts'
import { type OnProgress, seed } from '../setup/seed.ts'

export interface UsersSetup {
  readonly server: ServerProcess
  readonly baseline: BaselineProcess
  readonly load: LoadProcess
  readonly signInLoad: LoadProcess
  /** One session each of `sessionCount` users. */
  readonly sessions: readonly SessionTokens[]
  /** One of each user who has a password. */
  readonly signIns: readonly LoadRequest[]
}

export interface SessionTokens {
  readonly accessToken: string
  readonly refreshToken: string
}

export const tableRows = 10_000
/** As many as issue 4 has signing in at once. */
export const signInCount = 50
/** Each of them asks some ten times a second, as often as a busy page does. */
export const sessionCount = 1000

/** The stack closes what is opened. */
export async function openUsersSetup(
  stack: AsyncDisposableStack,
  work: string,
  onProgress: OnProgress,
): Promise<UsersSetup> {
  const folder = join(work, 'server')
  const { sessions, signIns } = await prepare(folder, onProgress)
  const baselineFolder = await copyFolder(folder, join(work, 'baseline'))
  const server = await startServer(folder)
  stack.defer(() => server.stop())
  const baseline = await startUsersBaseline(baselineFolder)
  stack.defer(() => baseline.stop())
  const [load, signInLoad] = [startLoad(), startLoad()]
  stack.defer(async () => void (await Promise.all([load.stop(), signInLoad.stop()])))
  return { server, baseline, load, signInLoad, sessions, signIns }
}

/** Fills the folder, then stops the server, whose data a copy is made of; sessions outlive that. */
async function prepare(folder: string, onProgress: OnProgress): Promise<Pick<UsersSetup, 'sessions' | 'signIns'>> {
  const server = await startServer(folder)
  try {
    await seed([server.url], tableRows, onProgress)
    const people = Array.from({ length: signInCount }, (_, number) => ({
      email: `user-${number}@bench.example`,
      password: `a long password of user ${number}`,
    }))
    await inTurn(people, (person) => ask(server, '/api/auth/signup', person))
    // Without a password, so that a thousand of them take no minute; their sessions are like any other.
    const sessions = await inTurn(Array.from({ length: sessionCount }), () => ask(server, '/api/auth/signin/anonymous'))
    const signIns = people.map((person) =>
      post('/api/auth/signin', person, { status: 200, includes: `"${person.email}"` }),
    )
    return { sessions, signIns }
  } finally {
    await server.stop()
  }
}

/** What each of them gives, in their order, with as many under way as the load generator has connections. */
async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  await Promise.all(Array.from({ length: clients }, lane))
  return results
}

async function ask(server: ServerProcess, path: string, body?: object): Promise<SessionTokens> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as SessionTokens
}
