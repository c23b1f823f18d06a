/** Gathers what an operator should look at from all parts of the server. Each check is bounded. */
import type { Advice } from '../../features/system/advice.ts'
import { adviseOnBackups } from './backups.ts'
import { adviseOnIndexes, adviseOnRules, adviseOnSpans } from './data.ts'
import { adviseOnKeys, adviseOnSecrets } from './expiry.ts'
import { adviseOnClocks, adviseOnDisk, adviseOnSettings } from './server.ts'
import type { AdviceSources } from './sources.ts'

/** A check that fails is logged, and does not hide what the others found. */
export const createAdvise = (sources: AdviceSources) => async (): Promise<readonly Advice[]> => {
  const checks: readonly ((of: AdviceSources) => readonly Advice[] | Promise<readonly Advice[]>)[] = [
    adviseOnRules,
    adviseOnIndexes,
    adviseOnSpans,
    adviseOnKeys,
    adviseOnSecrets,
    adviseOnBackups,
    adviseOnClocks,
    adviseOnDisk,
    adviseOnSettings,
  ]
  const found = await Promise.all(
    checks.map(async (check) => {
      try {
        return await check(sources)
      } catch (error) {
        sources.context.log.warn('system.advice_failed', { check: check.name, error })
        return []
      }
    }),
  )
  return found.flat()
}
