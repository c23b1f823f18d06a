/**
 * The system feature: endpoints about the server itself. Depends on no engine and no other feature; `app` supplies
 * their parts.
 */

import type { Feature } from '../feature.ts'
import { type AdviceParts, createAdviceEndpoint } from './advice.ts'
import { type BackupLeases, createLeaseEndpoints } from './backup-lease.ts'
import { type BackupsParts, createBackupsEndpoints } from './backups.ts'
import { createSystemEndpoints, type SystemParts } from './endpoints.ts'
import { createLogsEndpoint, type LogsParts } from './logs.ts'
import { createNodesEndpoint, type NodesParts } from './nodes.ts'
import { createStoresEndpoint } from './stores.ts'
import { createBackupEndpoints, type PauseWrites } from './write-pause.ts'

export type BackupParts = { readonly pauseWrites: PauseWrites; readonly leases: BackupLeases }

export const createSystem = (
  parts: SystemParts & BackupParts & LogsParts & NodesParts & BackupsParts & AdviceParts,
): Feature => ({
  name: 'system',
  endpoints: [
    ...createSystemEndpoints(parts),
    ...createBackupEndpoints(parts.pauseWrites),
    ...createLeaseEndpoints(parts.leases),
    ...createBackupsEndpoints(parts),
    createLogsEndpoint(parts),
    createNodesEndpoint(parts),
    createAdviceEndpoint(parts),
    createStoresEndpoint(parts.config),
  ],
})
