/** Bounds of aggregates: their parameters, their time, and the cache of their results. */
import { KiB, MiB } from './units.ts'

export const aggregateKeysMax = 4
export const aggregateMeasuresMax = 10
/** Conditions on groups. */
export const havingConditionsMax = 20
/** Characters of a name that a request gives to a key or a measure. */
export const aggregateNameCharsMax = 64
export const aggregateGroupsDefault = 100
/** A chart or a page of facets needs fewer; more is clamped, not refused. */
export const aggregateGroupsMax = 1000
/** Time limit of the scan: a chart that takes longer needs a filter, an index, or counts of its own. */
export const aggregateTimeoutMs = 2000
/** Bytes of texts in a result: long keys end it early, as large records end a page. */
export const aggregateTextBytesMax = MiB
/** Widths of a bucket, so that its lower bounds are numbers that differ. */
export const bucketWidthMin = 1e-9
export const bucketWidthMax = 1e15

/** Results kept until the next write of their table. */
export const aggregatesCachedMax = 2000
export const aggregatesCachedBytesMax = 16 * MiB
/** A larger result is computed each time. */
export const aggregateCachedBytesMax = 512 * KiB
