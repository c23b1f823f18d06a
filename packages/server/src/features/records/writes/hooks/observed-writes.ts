/** Reports each write before it begins and after it has ended, for functions that run after changes. */
import type { DatabaseAddress } from '../../../../engines/sql/sql.ts'
import type { RunWrite } from '../write-runner.ts'

/** Knows of each write before it begins and after it has ended. */
export interface WriteObserver {
  /**
   * The write begins once the promise resolves and fails if it rejects; null for at once. `leave` follows. False where
   * writes to the database are not observed.
   */
  enter(address: DatabaseAddress): Promise<void> | null | false
  leave(address: DatabaseAddress): void
}

export const observeWrites =
  (runWrite: RunWrite, observer: WriteObserver): RunWrite =>
  (call, table, shapeOf, work, options) => {
    const { address } = table
    const write = () => runWrite(call, table, shapeOf, work, options)
    const entered = observer.enter(address)
    if (entered === false) return write()
    return (entered ?? Promise.resolve()).then(write).finally(() => observer.leave(address))
  }
