/**
 * Writes of this page, one at a time for each record. A cell may be edited before the one beside it is saved: the later
 * write has the version that the earlier one has made of the version that was shown, so that neither conflicts with the
 * other. Between the two no other write has been accepted, since each had the condition `If-Match`.
 */
import type { Row } from '../rows/row.ts'

/** Versions that are remembered: of more than the edits whose undo is offered. */
const versionsKept = 500

interface Successor {
  readonly version: string
  /** The fields that were written. */
  readonly names: readonly string[]
}

export class WriteQueue {
  readonly #tails = new Map<string, Promise<unknown>>()
  readonly #successors = new Map<string, Successor>()

  /** Calls `write` with the version to name in `If-Match`, once earlier writes of the record have ended. */
  async write(
    { id, version }: Pick<Row, 'id' | 'version'>,
    names: readonly string[],
    write: (version: string) => Promise<Row>,
  ): Promise<Row> {
    const earlier = this.#tails.get(id)
    const run = async (): Promise<Row> => {
      await earlier?.catch(() => {})
      const base = this.#latest(id, version)
      const row = await write(base)
      this.#remember(keyOf(id, base), { version: row.version, names })
      return row
    }
    const tail = run()
    this.#tails.set(id, tail)
    try {
      return await tail
    } finally {
      if (this.#tails.get(id) === tail) this.#tails.delete(id)
    }
  }

  /** Whether a later write of this page has changed one of the fields. */
  hasChanged({ id, version }: Pick<Row, 'id' | 'version'>, names: readonly string[]): boolean {
    return this.#after(id, version).some((later) => later.names.some((name) => names.includes(name)))
  }

  #latest(id: string, version: string): string {
    return this.#after(id, version).at(-1)?.version ?? version
  }

  #after(id: string, version: string): readonly Successor[] {
    const all: Successor[] = []
    for (let next = this.#successors.get(keyOf(id, version)); next; ) {
      all.push(next)
      next = this.#successors.get(keyOf(id, next.version))
    }
    return all
  }

  #remember(key: string, successor: Successor): void {
    this.#successors.set(key, successor)
    const [oldest] = this.#successors.keys()
    if (this.#successors.size > versionsKept && oldest !== undefined) this.#successors.delete(oldest)
  }
}

const keyOf = (id: string, version: string): string => `${version} ${id}`
