/** Types of the configuration section `kv`. `kv.ts` validates it at start. */

/** A key-value store as it is written. */
export interface KvConfig {
  /** Milliseconds between two writes of one key; default 1000, 0 for no such limit, at most 60000. */
  readonly writeInterval?: number
  /** Of one value, as JSON: `'1mb'` (the default) to `'4mb'`, or bytes. */
  readonly maxValueSize?: string | number
}
