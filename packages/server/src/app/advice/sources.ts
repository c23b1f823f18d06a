/** What advice is computed from. */
import type { Dashboard } from '../../features/dashboard/index.ts'
import type { Records } from '../../features/records/index.ts'
import type { BackupsParts } from '../../features/system/backups.ts'
import type { AppContext } from '../context.ts'
import type { Nodes } from '../node-status.ts'

export interface AdviceSources {
  readonly context: AppContext
  readonly records: Pick<Records, 'matrix' | 'missingIndexes' | 'redundantIndexes' | 'unusedIndexes'>
  readonly dashboard: Pick<Dashboard, 'slowSpans'>
  readonly nodes: Nodes
  readonly backups: BackupsParts['backups']
}
