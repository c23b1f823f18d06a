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
  /** Sessions of `sessionCount` users, one each. */
  readonly sessions: readonly SessionTokens[]
  /** A sign-in request for each user with a password. */
  readonly signIns: readonly LoadRequest[]
}

export interface SessionTokens {
  readonly accessToken: string
  readonly refreshToken: string
}

export const tableRows = 10_000
/** Concurrent sign-ins. */
export const signInCount = 50
/** Each session sends some ten requests a second, as a busy page does. */
export const sessionCount = 1000

/** `stack` closes what is opened. */
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

/** Seeds the folder and stops the server, so that its data can be copied; sessions survive the restart. */
async function prepare(folder: string, onProgress: OnProgress): Promise<Pick<UsersSetup, 'sessions' | 'signIns'>> {
  const server = await startServer(folder)
  try {
    await seed([server.url], tableRows, onProgress)
    const people = Array.from({ length: signInCount }, (_, number) => ({
      email: `user-${number}@bench.example`,
      password: `a long password of user ${number}`,
    }))
    await mapConcurrently(people, (person) => signUp(server, '/api/auth/signup', person))
    // Anonymous, since hashing a thousand passwords would take a minute; their sessions are like any other.
    const sessions = await mapConcurrently(Array.from({ length: sessionCount }), () =>
      signUp(server, '/api/auth/signin/anonymous'),
    )
    const signIns = people.map((person) =>
      post('/api/auth/signin', person, { status: 200, includes: `"${person.email}"` }),
    )
    return { sessions, signIns }
  } finally {
    await server.stop()
  }
}

/** Runs `work` for all items with the concurrency of the load generator; results keep the order of the items. */
async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  await Promise.all(Array.from({ length: clients }, lane))
  return results
}

async function signUp(server: ServerProcess, path: string, body?: object): Promise<SessionTokens> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as SessionTokens
}
