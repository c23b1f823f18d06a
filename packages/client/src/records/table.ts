/** Tables: single records, and every query of their rows. */
import type { Call } from '../core/deadline.ts'
import { isPlinthError } from '../core/error.ts'
import { keyed, type Request } from '../core/request.ts'
import { type LiveResults, Query, type Row } from './query.ts'

export type WriteOptions = Call & { readonly ifMatch?: string; readonly idempotencyKey?: string; readonly on?: string }

export class Table extends Query {
  #send(method: string, id: string, options?: WriteOptions, body?: object): Promise<Row> {
    return this.source.send(method, `/${encodeURIComponent(id)}`, { ...options, body })
  }

  get(id: string, options?: Call): Promise<Row> {
    return this.#send('GET', id, options)
  }

  async find(id: string, options?: Call): Promise<Row | null> {
    try {
      return await this.get(id, options)
    } catch (error) {
      if (isPlinthError(error, 'not-found')) return null
      throw error
    }
  }

  insert(row: object, options?: WriteOptions & Pick<Request, 'query'>): Promise<Row> {
    return this.source.send('POST', '', keyed({ ...options, body: row }))
  }

  upsert(row: object, options: WriteOptions = {}): Promise<Row> {
    return this.insert(row, { ...options, query: { upsert: 'true', conflictTarget: options.on } })
  }

  /** By id; by filter where the first argument is a patch. */
  override update(id: string | object, patch?: object, options?: WriteOptions): Promise<unknown> {
    return typeof id === 'string' ? this.#send('PATCH', id, options, patch) : super.update(id, patch as Call)
  }

  override async delete(id?: string | Call, options?: WriteOptions): Promise<unknown> {
    if (typeof id !== 'string') return super.delete(id)
    await this.#send('DELETE', id, options)
  }

  /** The live record of an id. */
  liveRecord(id: string): unknown {
    return this.source.core.part<LiveResults>('live').record(this, id)
  }

  /** Writes that live lists show at once and take back where the server refuses them. */
  get optimistic(): unknown {
    return this.source.core.part<LiveResults>('live').optimistic(this)
  }
}
