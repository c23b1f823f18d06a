/**
 * The dashboard: its page, the sessions of administrators, and the endpoints that only it has. Everything else it does
 * through the endpoints of the API, which administrators call as service callers (`http/mounted-endpoints`).
 */
import type { ServiceKey } from '../../access/service-keys.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { TrustProxy } from '../../base/network/address.ts'
import type { Mode } from '../../config/config.ts'
import type { DashboardConfig } from '../../config/sections/dashboard/dashboard.ts'
import type { NodeDirectory } from '../../engines/cluster/node-directory.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import type { RequestRecorder } from '../../http/responder.ts'
import type { DashboardAccess } from '../../http/security/dashboard-access.ts'
import type { RateLimiter } from '../../http/security/rate-limit.ts'
import { auditIntentMs, keyUsesWrittenMs } from '../../limits/dashboard.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { createAudit, type DashboardAudit } from './audit/audit.ts'
import { createAuditChain } from './audit/chain.ts'
import { createAuditEndpoints } from './audit/endpoints.ts'
import { createAuditReader } from './audit/reader.ts'
import { createInstanceEndpoints } from './instances/endpoints.ts'
import { dashboardAddress } from './migrations.ts'
import { createPage } from './page.ts'
import { createRequestEndpoints, type EngineFaults, type ExplainRequest } from './requests/endpoints.ts'
import { createAnswer, type PeerAnswer, type PeerNode, type PeerQuestion } from './requests/peer-requests.ts'
import { createRecentRequests, type RecentRequestsDeps } from './requests/recent-requests.ts'
import { createSampler } from './requests/sampler.ts'
import type { SlowSpan } from './requests/slow-spans.ts'
import { createSessionEndpoints, type SignInMethods } from './session-endpoints.ts'
import type { DashboardSessions } from './sessions.ts'
import { createSettingsEndpoint } from './settings/endpoints.ts'
import { createKeyUses } from './settings/key-uses.ts'
import { createMailEndpoints, type SampleMails } from './settings/mails.ts'
import type { ServerSettings } from './settings/server-settings.ts'
import { createServiceKeyEndpoint } from './settings/service-keys.ts'
import {
  type AdministratorAccount,
  createFindAdministrator,
  createFindSession,
  createTarget,
  type DashboardTarget,
} from './sign-in.ts'
import { createViewAsEndpoints } from './view-as/endpoints.ts'
import { createViewAs, type ViewedUsers } from './view-as/view-as.ts'
import { createViewEndpoints } from './views/views.ts'

export interface DashboardDeps<Passkey> {
  readonly sql: Sql
  /** Seals cursors. */
  readonly secret: string
  readonly log: Log
  readonly sessions: DashboardSessions
  /** The ways to sign in, with the same checks as for the API. */
  readonly signInTo: (target: DashboardTarget) => SignInMethods<Passkey>
  /** The account, unless it is disabled or was deleted. */
  readonly findActive: (userId: string) => Promise<AdministratorAccount | null>
  readonly viewedUsers: ViewedUsers
  /** The mails about accounts. */
  readonly mails: SampleMails
  readonly limiter: RateLimiter
  /** Those in force, the root key first. */
  readonly serviceKeys: () => readonly ServiceKey[]
  readonly serverSettings: () => ServerSettings
  /** Null where the dashboard is switched off. */
  readonly config: () => DashboardConfig | null
  readonly mode: () => Mode
  readonly publicUrl: string | null
  readonly trustProxy: TrustProxy
  /** In place of the folder of the built page. */
  readonly pageFolder?: string | undefined
  readonly version: string
  /** The names of the tables of a dynamic namespace; null for any other. */
  readonly instanceTables: (namespace: string) => readonly string[] | null
  readonly findFaults: () => Promise<EngineFaults>
  /** Requests in progress. */
  readonly inFlight: () => number
  /** This run of this process. */
  readonly node: PeerNode
  /** Lets this node answer others, and query them. */
  readonly openPeers: (
    answer: (question: PeerQuestion, isOwn: boolean) => Promise<PeerAnswer>,
  ) => NodeDirectory<PeerQuestion, PeerAnswer>
  readonly explainRequest: ExplainRequest
  readonly isHidden: RecentRequestsDeps['isHidden']
  readonly clock: Clock
}

export interface Dashboard extends Feature {
  /** Authenticates requests from the page. */
  readonly access: DashboardAccess
  /** Keeps the recent requests. */
  readonly recorder: RequestRecorder
  /** Notes the use of a service key. */
  readonly noteKeyUse: (name: string) => void
  /** What is slow in the traced ones. */
  readonly slowSpans: () => readonly SlowSpan[]
  /** Records what administrators and service keys change. */
  readonly audit: DashboardAudit
  /** The administrator of a job that goes on after the request. */
  readonly findAdministrator: ReturnType<typeof createFindAdministrator>
}

/** Records the outcome of actions that the previous server did not end as unknown. */
export async function openDashboard<Passkey>(deps: DashboardDeps<Passkey>): Promise<Dashboard> {
  const { sql, sessions, publicUrl, trustProxy, clock, log, secret } = deps
  const database = sql.database(dashboardAddress)
  const chain = createAuditChain({ database, log })
  const audit = createAudit({ chain, clock, log })
  const sampler = createSampler(clock, () => deps.mode() === 'development')
  const recent = createRecentRequests({ clock, sampler, isHidden: deps.isHidden })
  const answer = createAnswer(deps.node, recent, sampler)
  const reader = createAuditReader({ database, chain })
  // The embedded engine has one server, so that no other one can have an action under way.
  if (sql.circuit === null) await chain.recover(Number.MAX_SAFE_INTEGER)
  const viewAs = createViewAs({ database, users: deps.viewedUsers, audit, clock })
  const access: DashboardAccess = {
    findSession: createFindSession({ ...deps, findViewed: viewAs.find }, 'find'),
    checkSession: createFindSession({ ...deps, findViewed: viewAs.find }, 'check'),
    publicUrl,
    trustProxy,
    now: () => clock.now(),
  }
  const signIn = deps.signInTo(createTarget(deps))
  const keyUses = createKeyUses({ database, clock })
  const peers = deps.openPeers(async (question, isOwn) => answer(question, isOwn))
  return {
    name: 'dashboard',
    access,
    audit,
    recorder: recent.recorder,
    noteKeyUse: keyUses.note,
    slowSpans: recent.slowSpans,
    findAdministrator: createFindAdministrator(deps),
    endpoints: createAuditEndpoints({ reader, secret }),
    dashboardEndpoints: [
      ...createPage({ folder: deps.pageFolder }),
      ...createViewEndpoints({ database, clock }),
      createSettingsEndpoint(deps.serverSettings),
      ...createMailEndpoints(deps),
      createServiceKeyEndpoint({ ...deps, uses: keyUses }),
      ...createInstanceEndpoints(deps),
      ...createViewAsEndpoints(viewAs),
      ...createRequestEndpoints({ ...deps, recent, queryPeers: (question) => peers.query(question), now: access.now }),
      ...createSessionEndpoints({ ...deps, access, signIn, audit, viewAs }),
    ],
    jobs: [
      { name: 'dashboard.sweepSessions', intervalMs: housekeepingIntervalMs, run: sessions.sweep },
      { name: 'dashboard.sweepViewAs', intervalMs: housekeepingIntervalMs, run: viewAs.sweep },
      {
        name: 'dashboard.recoverAudit',
        intervalMs: housekeepingIntervalMs,
        run: (signal) => chain.recover(clock.now() - auditIntentMs, signal),
      },
      { name: 'dashboard.writeKeyUses', intervalMs: keyUsesWrittenMs, perNode: true, run: () => keyUses.write() },
      { name: 'dashboard.pruneAudit', intervalMs: housekeepingIntervalMs, run: chain.prune },
    ],
    async close() {
      peers.close()
      // Without the engine, a use of the last minute is lost.
      await keyUses.write().catch(() => {})
    },
  }
}
