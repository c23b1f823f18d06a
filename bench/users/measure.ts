/**
 * Measures accounts: authenticated reads, refreshes, sign-ins, and the effect of sign-ins on other requests.
 */
import { sessionCheckMs } from '../../packages/server/src/limits/users.ts'
import type { LoadJob, LoadResult } from '../load/load.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import type { Reported } from '../report.ts'
import { type Baseline, clients, pointReads, post } from '../scenarios.ts'
import { type Comparison, compare, type Plan, type Round, roundOf, runLoop } from '../setup/measure.ts'
import type { UsersLoopName } from './baseline.ts'
import { type SessionTokens, sessionCount, signInCount, tableRows, type UsersSetup } from './setup.ts'

type BaselineLine = Pick<Baseline, 'title' | 'budget'>

/** Called with each measurement when it is complete. */
export type OnMeasured = (measurement: Reported) => void

/** Budget of reads and sign-ins. */
const shareMin = 0.9

/**
 * Runs all measurements in order, on an unused setup. Reads with many sessions last as long as a session is cached, so
 * that each session is looked up once in the window.
 */
export async function measureUsers(setup: UsersSetup, plan: Plan, onMeasured: OnMeasured): Promise<Reported[]> {
  const measurements: Reported[] = []
  const add = (measurement: Reported): void => {
    measurements.push(measurement)
    onMeasured(measurement)
  }
  add(await measureReads(setup, plan, 'Point read, one signed-in user', setup.sessions.slice(0, 1)))
  const many = `Point read, ${sessionCount.toLocaleString('en-US')} signed-in users in rotation`
  add(await measureReads(setup, { ...plan, seconds: sessionCheckMs / 1000 }, many, setup.sessions))
  add(await measureRefresh(setup, plan))
  const signIn = await measureSignIn(setup, plan)
  add(signIn)
  add(await measureReadsBeside(setup, plan, signIn.baselines[0]?.p50Ms ?? null))
  return measurements
}

function underLoad(
  { server, load }: UsersSetup,
  plan: Plan,
  job: Pick<LoadJob, 'requests' | 'connections' | 'renewed'>,
): Promise<LoadResult> {
  const { warmupSeconds, seconds } = plan
  return load.run({ ports: [server.port], warmupSeconds, seconds, total: null, watched: [[server.pid]], ...job })
}

type HeadersAt = (index: number) => string

/** Reads of the same rows in the same order, whatever the headers. */
function createReads(setup: UsersSetup, plan: Plan, headersAt?: HeadersAt): () => Promise<Round> {
  const requests = pointReads('posts', tableRows, headersAt)
  return async () => roundOf(await underLoad(setup, plan, { requests, connections: clients }), 1)
}

/** A header line with the token of each session in rotation, in `Authorization` or in an ignored header. */
const tokensAs =
  (name: string, sessions: readonly SessionTokens[]): HeadersAt =>
  (index) =>
    `${name}: Bearer ${(sessions[index % sessions.length] as SessionTokens).accessToken}\r\n`

async function measureReads(
  setup: UsersSetup,
  plan: Plan,
  title: string,
  sessions: readonly SessionTokens[],
): Promise<Reported> {
  const authenticated = createReads(setup, plan, tokensAs('Authorization', sessions))
  const anonymous = createReads(setup, plan)
  const sameLength = createReads(setup, plan, tokensAs('X-Not-A-Token', sessions))
  // The same process serves all of them: warm up, so that the first one does not include JIT compilation.
  for (const run of [anonymous, authenticated]) await run()
  const comparison = await compare<BaselineLine>(
    { pid: setup.server.pid, run: authenticated },
    [
      { baseline: { title: 'anonymous', budget: shareMin }, run: anonymous },
      { baseline: { title: 'anonymous, token in an ignored header', budget: null }, run: sameLength },
    ],
    plan.rounds,
  )
  return { scenario: { title }, ...comparison }
}

const createLoop =
  ({ baseline }: UsersSetup, name: UsersLoopName, seconds: number) =>
  (): Promise<Round> =>
    runLoop(baseline, name, seconds)

/** Refreshes with the newest token of each session; every response must have advanced its session's generation. */
async function measureRefresh(setup: UsersSetup, plan: Plan): Promise<Reported> {
  let requests = setup.sessions.map(({ refreshToken }) => refreshOf(refreshToken))
  let answered = 0
  const run = async (): Promise<Round> => {
    const result = await underLoad(setup, plan, { requests, connections: clients, renewed: 'refreshToken' })
    answered += result.answered
    requests = (result.renewedTexts ?? []).map((text) => ({ ...refreshOf(''), text }))
    return roundOf(result, 1)
  }
  const comparison = await compare<BaselineLine>(
    { pid: setup.server.pid, run },
    [
      {
        baseline: { title: 'loop of 64 sessions per commit, signed', budget: null },
        run: createLoop(setup, 'refresh-signed', plan.seconds),
      },
      {
        baseline: { title: 'the loop without signatures', budget: null },
        run: createLoop(setup, 'refresh', plan.seconds),
      },
    ],
    plan.rounds,
  )
  const refreshes = requests.reduce((sum, { text }) => sum + generationOf(text), 0)
  if (refreshes !== answered) throw new Error(`${answered} refreshes were acknowledged, but ${refreshes} were stored`)
  return {
    scenario: { title: `Refresh, ${sessionCount.toLocaleString('en-US')} sessions in rotation, ${clients} in flight` },
    ...comparison,
  }
}

const refreshOf = (refreshToken: string): LoadRequest =>
  post('/api/auth/refresh', { refreshToken }, { status: 200, includes: '"accessToken"' })

/** Reads the generation of a session from the token of a refresh request. Throws when it is missing. */
export function generationOf(requestText: string): number {
  const payload = /"refreshToken":"[\w-]+\.([\w-]+)\.[\w-]+"/.exec(requestText)?.[1] ?? ''
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString() || '{}') as { gen?: unknown }
  if (typeof claims.gen !== 'number') throw new Error('A refresh token without a generation')
  return claims.gen
}

/** Factor of the measured window: hashes are slow, and a rate needs enough of them. */
const signInWindows = 2

async function measureSignIn(setup: UsersSetup, plan: Plan): Promise<Reported & Comparison<BaselineLine>> {
  const seconds = plan.seconds * signInWindows
  const { signIns: requests } = setup
  const run = async (): Promise<Round> =>
    roundOf(await underLoad(setup, { ...plan, seconds }, { requests, connections: signInCount }), 1)
  const baseline = { title: 'bare hash, as many at once', budget: shareMin }
  const comparison = await compare<BaselineLine>(
    { pid: setup.server.pid, run },
    [{ baseline, run: createLoop(setup, 'hash', seconds) }],
    plan.rounds,
  )
  return { scenario: { title: `Sign-in, ${signInCount} in flight` }, ...comparison }
}

/** How long sign-ins start before, and continue after, the reads beside them. */
const marginSeconds = 0.7

/**
 * Reads while sign-ins run, compared with reads on the same core while another process hashes, which is the cost of
 * hashing itself.
 */
async function measureReadsBeside(setup: UsersSetup, plan: Plan, hashMs: number | null): Promise<Reported> {
  const reads = createReads(setup, plan)
  const readsSeconds = plan.warmupSeconds + plan.seconds
  const besideSignIns = (): Promise<Round> => readsWhile(reads, signInsFor(setup, readsSeconds + 2 * marginSeconds))
  const besideHashes = (): Promise<Round> =>
    readsWhile(reads, createLoop(setup, 'hash', readsSeconds + 2 * marginSeconds)())
  const comparison = await compare<BaselineLine>(
    { pid: setup.server.pid, run: besideSignIns },
    [
      { baseline: { title: 'the same while another process hashes as much', budget: null }, run: besideHashes },
      { baseline: { title: 'the same with nothing beside', budget: null }, run: reads },
    ],
    plan.rounds,
  )
  const verdict = blockingVerdict(comparison.p99Ms, hashMs)
  return { scenario: { title: `Point read while ${signInCount} sign-ins run` }, ...comparison, verdict }
}

/** A read that waits for a hash takes at least as long as one. */
export function blockingVerdict(p99Ms: number | null, hashMs: number | null): string {
  if (p99Ms === null || hashMs === null) return ''
  return `p99 < ${Math.round(hashMs)} ms ${p99Ms < hashMs ? '✓' : '✗'}`
}

function signInsFor({ server, signInLoad, signIns }: UsersSetup, seconds: number): Promise<LoadResult> {
  const job = { ports: [server.port], connections: signInCount, requests: signIns, watched: [] }
  return signInLoad.run({ ...job, warmupSeconds: 0, seconds, total: null })
}

/** Runs reads beside other work, without CPU, which would include the other work. */
async function readsWhile(reads: () => Promise<Round>, other: Promise<unknown>): Promise<Round> {
  let hasEnded = false
  const otherwise = other.finally(() => {
    hasEnded = true
  })
  const measured = Bun.sleep(marginSeconds * 1000).then(async () => {
    const round = await reads()
    if (hasEnded) throw new Error('The reads took longer than the work beside them')
    return { ...round, cpuSeconds: null }
  })
  const [round] = await Promise.all([measured, otherwise])
  return round
}
