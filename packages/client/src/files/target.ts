/** Where an upload goes. */
import type { Core } from '../core/core.ts'
import type { UploadOptions } from '../types/files.ts'

export interface Target {
  readonly core: Core
  /** `/api/storage/{bucket}`. */
  readonly path: string
  readonly key: string
  readonly options: UploadOptions
}
