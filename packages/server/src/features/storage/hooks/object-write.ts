/**
 * Transactions that change objects, with the hooks that run before. A transaction changes one object. The hooks run
 * outside of it: a change that they have not decided rolls it back, the hooks run, and it runs again. A decision holds
 * for one state of the object and one change of it, so an object that changes meanwhile is decided again.
 */
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { conflict } from '../../../errors.ts'
import { hookAttemptsMax } from '../../../limits/writes.ts'
import {
  type HookEvent,
  type HookOperation,
  HookRefusal,
  hookOperations,
  type NamespaceHooks,
} from '../../before-hooks.ts'
import { rehearsalOf } from '../../write-rehearsal.ts'
import type { BucketCall } from '../buckets.ts'
import type { StoredObject } from '../object-rows.ts'
import { toFile } from '../schemas.ts'
import { parseHookedFile } from './hooked-file.ts'

/** The change of an object, in the place where it would be written. */
export interface ProposedChange {
  readonly operation: HookOperation
  readonly previous: StoredObject | null
  /** The object as it would be stored; of a delete, the object that is deleted. */
  readonly object: StoredObject
}

/** A transaction that may change one object. */
export interface ObjectWrite {
  readonly tx: Transaction
  readonly call: BucketCall
  /** The object to store. Throws if the hooks have not decided it, which rolls the transaction back. */
  decide(change: ProposedChange): StoredObject
}

export interface ObjectWriter {
  /**
   * Runs `work` in a transaction. Throws what it throws, the refusal of a hook, and 409 if the object changed each time
   * while the hooks ran; `onRefused` runs after a refusal.
   */
  write<T>(call: BucketCall, work: (write: ObjectWrite) => Promise<T>, onRefused?: () => Promise<void>): Promise<T>
}

/** Rolls back a transaction whose change is not decided. */
class Undecided extends Error {}

interface Note {
  readonly change: ProposedChange
  /** The same for the same change of the same state. */
  readonly identity: string
}

/** Without the time, which is another in each attempt; the object is stored with that of its decision. */
const identityOf = ({ operation, previous, object }: ProposedChange): string =>
  JSON.stringify([operation, previous && [previous.version, toFile(previous)], { ...toFile(object), uploaded: null }])

/** Decides the change of one request. */
class Decisions {
  readonly #hooks: NamespaceHooks
  readonly #call: BucketCall
  #decided: { readonly identity: string; readonly object: StoredObject } | null = null
  #note: Note | null = null

  constructor(hooks: NamespaceHooks, call: BucketCall) {
    this.#hooks = hooks
    this.#call = call
  }

  decide(change: ProposedChange): StoredObject {
    const { operation, object } = change
    if (!this.#hooks.covers(this.#call.bucket.name, operation)) return object
    const identity = identityOf(change)
    if (this.#decided?.identity === identity) {
      const { createdAt, customMetadata } = this.#decided.object
      return { ...object, createdAt, customMetadata }
    }
    this.#note = { change, identity }
    throw new Undecided('The change of a file has not been decided by its hooks')
  }

  async #runHooks(): Promise<void> {
    if (!this.#note) return
    const { change, identity } = this.#note
    const { operation, previous, object } = change
    const { bucket, caller, requestId, signal } = this.#call
    const event: HookEvent = {
      namespace: 'storage',
      instanceId: null,
      table: bucket.name,
      operation,
      previous: previous && toFile(previous),
      row: toFile(object),
    }
    const [hooked] = await this.#hooks.run([event], { caller, requestId, signal })
    // What remains of an object that is deleted is nothing.
    const customMetadata = hooked && operation !== 'delete' ? parseHookedFile(object, hooked) : object.customMetadata
    this.#decided = { identity, object: { ...object, customMetadata } }
    this.#note = null
  }

  /** Runs work that writes nothing, so that the hooks may run before the transaction. */
  async foresee(rehearse: () => Promise<unknown>): Promise<void> {
    try {
      await rehearse()
    } catch {
      // The transaction decides about errors.
    }
    await this.#runHooks()
  }

  async run<T>(transaction: () => Promise<T>): Promise<T> {
    for (let stale = 0; ; ) {
      try {
        return await transaction()
      } catch (error) {
        if (!(error instanceof Undecided)) throw error
      }
      if (this.#decided && ++stale >= hookAttemptsMax)
        throw conflict('The file changed each time while the hooks of this write ran')
      await this.#runHooks()
    }
  }
}

/** `hooks` gives those of the buckets; null without any. */
export function createObjectWriter(database: Database, hooks: () => NamespaceHooks | null): ObjectWriter {
  return {
    async write(call, work, onRefused) {
      const found = hooks()
      if (!found || !hookOperations.some((operation) => found.covers(call.bucket.name, operation)))
        return database.write((tx) => work({ tx, call, decide: ({ object }) => object }))
      const decisions = new Decisions(found, call)
      const decide = (change: ProposedChange): StoredObject => decisions.decide(change)
      try {
        await decisions.foresee(() => work({ tx: rehearsalOf(database), call, decide }))
        return await decisions.run(() => database.write((tx) => work({ tx, call, decide })))
      } catch (error) {
        if (!(error instanceof HookRefusal)) throw error
        await onRefused?.()
        throw error.error
      }
    },
  }
}
