/**
 * The system feature: what the server says about itself. Knows no engine and no other feature; all it tells it is
 * handed.
 */
import type { Endpoint } from '../../http/endpoint.ts'
import { createBackupEndpoints, type HoldWrites } from './backup-hold.ts'
import { createSystemEndpoints, type SystemParts } from './endpoints.ts'

export interface System {
  readonly endpoints: readonly Endpoint[]
}

export const createSystem = (parts: SystemParts & { readonly holdWrites: HoldWrites }): System => ({
  endpoints: [...createSystemEndpoints(parts), ...createBackupEndpoints(parts.holdWrites)],
})
