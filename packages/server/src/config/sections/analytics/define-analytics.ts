/** Types of the configuration section `analytics`. `analytics.ts` validates it at start. */

/** As it is written. */
export interface AnalyticsOptions {
  /** The names events may have, but for those a service key sends; left out, any. */
  readonly events?: readonly string[]
  /** False: only users who have signed in with something, and service keys, may send events; default true. */
  readonly anonymous?: boolean
  /** False: requests are not counted, and reports on them stay empty; default true. Counts stay for 90 days. */
  readonly requestLog?:
    | boolean
    | {
        /** How long a row of each request is kept, at most `90d`; default `7d`. */
        readonly retention?: string
        /** What these rows take at most, at least `1mb`; the oldest go first. Default `1gb`. */
        readonly maxSize?: string | number
      }
  readonly rawEvents?: {
    /** What single events take at most, at least `1mb`; the oldest days go first. Default `4gb`. Counts stay. */
    readonly maxSize?: string | number
  }
}
