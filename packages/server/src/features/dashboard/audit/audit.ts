/**
 * Records the actions of administrators and service keys. An action of an administrator is intended durably before it
 * begins, so that it leaves an entry even if the server is killed; one of a service key is recorded before its reply.
 */
import { administratorPrefix } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { Log } from '../../../base/log.ts'
import { ApiError } from '../../../errors.ts'
import type { Audit, AuditedRequest } from '../../../http/audit.ts'
import type { AuditedChange } from '../../../http/audited-change.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { mountedName } from '../../../http/mounted-endpoints.ts'
import { auditChangesMax, auditTargetCharsMax } from '../../../limits/dashboard.ts'
import type { AuditChain } from './chain.ts'
import { type AuditRecord, contentOf } from './entry.ts'

export interface DashboardAudit extends Audit {
  /** Records how a job of an administrator has ended; adds nothing where it is recorded. */
  recordJob(job: AuditedJob): Promise<void>
  /** Records that an administrator has signed in. */
  recordSignIn(user: Actor, call: Pick<Call, 'address' | 'path' | 'requestId'>): Promise<void>
  /** Runs what ends without a request for it, and records the event if it resolves with true. */
  recordEvent(event: AuditedEvent, work: () => Promise<boolean>): Promise<void>
}

/** Work of an administrator that went on after the request; its id is that of the entry. */
export interface AuditedJob extends Pick<AuditRecord, 'id' | 'target' | 'outcome' | 'requestId'>, AuditedChange {
  readonly actor: { readonly userId: string; readonly email: string | null; readonly address: string }
  readonly action: string
}

interface Actor {
  readonly id: string
  readonly email: string | null
}

/** What happened to the session of an administrator. */
export interface AuditedEvent {
  readonly actor: Actor
  readonly action: string
  readonly target: string
  readonly address: string
  readonly requestId: string
  readonly before: unknown
  readonly after: unknown
}

export interface AuditDeps {
  readonly chain: AuditChain
  readonly clock: Clock
  readonly log: Log
}

/** What is known of an action before it begins. */
function intentOf({ caller, endpoint, call }: AuditedRequest, id: string, at: number): AuditRecord {
  return {
    id,
    at,
    actor: caller.keyName,
    actorName: caller.admin?.email ?? null,
    via: caller.admin ? 'dashboard' : 'service-key',
    ip: call.address,
    action: mountedName(endpoint),
    target: call.path.slice(0, auditTargetCharsMax),
    outcome: 'done',
    requestId: call.requestId,
    before: null,
    after: null,
  }
}

/** Whether an action that ended with this error has changed nothing. */
const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.status < 500

export function createAudit({ chain, clock, log }: AuditDeps): DashboardAudit {
  const newId = createUuid7(clock)

  /** The action is over: a failure leaves the intent, which becomes an entry later. */
  async function withdraw(id: string): Promise<void> {
    await chain.withdraw(id).catch((error) => log.warn('dashboard.audit_withdrawal_failed', { error }))
  }

  const recordOf = ({ actor, action, target, address, requestId, before, after }: AuditedEvent): AuditRecord => ({
    id: newId(),
    at: clock.now(),
    actor: `${administratorPrefix}${actor.id}`,
    actorName: actor.email,
    via: 'dashboard',
    ip: address,
    action,
    target,
    outcome: 'done',
    requestId,
    before,
    after,
  })

  return {
    async record(request, work): Promise<Reply> {
      const { caller, endpoint, call } = request
      const isIntended = caller.admin !== undefined
      const hidesBody = endpoint.hidesBody ?? endpoint.isSecret ?? false
      const sent = hidesBody || call.body === undefined ? [] : [{ before: null, after: call.body }]
      // Until an action is over, its input is what is known of it.
      const intent = { ...intentOf(request, newId(), clock.now()), ...contentOf(sent, sent.length) }
      if (isIntended) await chain.intend(intent)
      const changes: AuditedChange[] = []
      let count = 0
      call.audit = (change) => {
        count += 1
        if (changes.length < auditChangesMax) changes.push(change)
      }
      const entryOf = (outcome: AuditRecord['outcome']): AuditRecord => {
        return { ...intent, outcome, ...(count > 0 ? contentOf(changes, count) : {}) }
      }
      let reply: Reply
      try {
        reply = await work()
      } catch (error) {
        if (!isRefusal(error)) await chain.append(entryOf('failed'), isIntended)
        else if (isIntended) await withdraw(intent.id)
        throw error
      }
      if (reply.status < 400) await chain.append(entryOf('done'), isIntended)
      else if (isIntended) await withdraw(intent.id)
      return reply
    },

    async recordJob({ actor, before, after, target, ...job }) {
      if (await chain.has(job.id)) return
      const record: AuditRecord = {
        ...job,
        ...contentOf([{ before, after }], 1),
        at: clock.now(),
        actor: `${administratorPrefix}${actor.userId}`,
        actorName: actor.email,
        via: 'dashboard',
        ip: actor.address,
        target: target.slice(0, auditTargetCharsMax),
      }
      await chain.append(record, false)
    },

    recordSignIn: (actor, { address, path: target, requestId }) =>
      chain.append(
        recordOf({ actor, action: 'dashboard.signIn', target, address, requestId, before: null, after: null }),
        false,
      ),

    async recordEvent(event, work) {
      const record = recordOf(event)
      await chain.intend(record)
      if (await work()) await chain.append(record, true)
      else await withdraw(record.id)
    },
  }
}
