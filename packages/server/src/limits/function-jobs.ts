/** Limits of the durable half of server code: jobs, the dispatcher of changes, schedules. */
import { KiB, MiB } from './units.ts'

// Jobs
/** Lease of a running job, renewed at a third of it: how soon another node runs the jobs of a node that died. */
export const functionJobLeaseMs = 30_000
/** Jobs that a node runs at once; the hosts bound the invocations as well. */
export const functionJobsRunningMax = 64
/** Jobs of one function that a node runs at once, so that a slow function leaves room for the others. */
export const functionJobsOfOneMax = 32
/** Time that shutdown waits for running jobs; the others are returned and begin again. */
export const functionJobsDrainMs = 8000
/** Jobs that one transaction finishes. */
export const functionJobsFinishedTogetherMax = 200
/** How often a node looks for due jobs without being woken: what a lost notice of another node delays. */
export const functionJobsPollMs = 1000
/** A node without functions looks for the first job of another node, which would continue it if that node dies. */
export const functionJobsAdoptMs = 10_000
/** Unfinished jobs. Beyond it `enqueue` is refused and the dispatcher waits; the change log keeps the changes. */
export const functionJobsWaitingMax = 100_000
/** Their input in characters. */
export const functionJobsWaitingChars = 512 * MiB
/** Input of a job that is enqueued, in characters. Larger values belong in a table or a file. */
export const functionJobInputChars = 256 * KiB
/** Jobs that one transaction adds. */
export const transactionJobsMax = 100
/** Ordering and unique keys: a record id with the name of its database fits. */
export const functionJobKeyCharsMax = 512
/** Characters of the last error that are stored. */
export const functionJobErrorCharsMax = 2000
/** Finished jobs are the history that the admin API lists. */
export const functionJobsFinishedKeptMs = 7 * 24 * 60 * 60 * 1000
export const functionJobsFinishedMax = 100_000
/** Rows that one transaction of the retention deletes. */
export const functionJobsTrimRows = 500

/** Longest delay of a job: a year. */
export const functionJobDelayMaxMs = 366 * 24 * 60 * 60 * 1000
/** Page of the list of jobs. */
export const functionJobsListed = 50
export const functionJobsListedMax = 200
/** Runs of a schedule that its list contains. */
export const scheduleRunsListed = 10

// Effects
/**
 * Writes of one attempt, whose responses are stored until the job is done: more than one after the other can make in
 * the longest time of a function.
 */
export const functionEffectsMax = 100_000
/** Characters of these responses, each counted up to the size in which it is stored. */
export const functionEffectChars = 256 * MiB

// Retries
/** Attempts after the first by default: with the pauses about ten minutes. */
export const functionRetries = 8
/** Upper bound of the first pause; each one doubles it. */
export const functionBackoffMs = 1000
export const functionBackoffMaxMs = 60 * 60 * 1000
/** Pause of a job that found every host busy. It costs no attempt. */
export const functionBusyPauseMs = 250
/** Attempts that a job has at least when its node or host dies under it: another job may be the cause. */
export const functionCrashAttempts = 3

// Dispatcher
/** Changes and bytes of records that become jobs in one transaction. */
export const dispatcherPageChanges = 500
export const dispatcherPageBytes = 8 * MiB
/** How often a log is read without being woken, and how often a node tries to take over the logs of another one. */
export const dispatcherPollMs = 1000
/** Changes younger than twice this are never trimmed; older positions are checked before they are read from. */
export const dispatcherCheckMs = 30_000
/** Lease on a log: how soon another node dispatches it after a crash. */
export const dispatcherLeaseMs = 10_000
/** How long an instance without writes stays marked as written, which spares the next write a transaction. */
export const dispatcherRestMs = 10_000
/** Logs of instances that are read at the same time. */
export const dispatchersReadingMax = 8
/**
 * Instances that a start finds marked as written, up to as many as were written in the last seconds of the process
 * before, are dispatched so many at a time: each opens a database.
 */
export const dispatchersTakenUpMax = 16
/** Positions that are read at a time. */
export const dispatcherPositionsPage = 500
/** Functions that cause each other: a change of this depth runs no more of them. */
export const functionDepthMax = 8

// Schedules
/** How often due schedules are looked for at least. */
export const schedulePollMs = 1000
/** A run that is later than this was missed: no server ran at its time. */
export const scheduleLateMs = 10_000
/** Times of one schedule that are computed in one step. */
export const scheduleRunsDueMax = 1000
/** Unfinished runs of a schedule; further ones are left out, since the schedule is faster than its function. */
export const scheduleWaitingMax = 100
