/** Limits of the dashboard: sessions, roles, the audit log, saved views, bulk jobs, and the requests that it shows. */
import { KiB } from './units.ts'

// Sessions
/** A working day: administrators sign in each morning. */
export const dashboardSessionMs = 12 * 60 * 60 * 1000
/** A screen that was left alone. */
export const dashboardIdleMs = 60 * 60 * 1000
/** How often the last use of a session is written. */
export const dashboardTouchMs = 60 * 1000
/** How often the session of an open socket is looked up: how long it can outlive the session. */
export const dashboardSocketCheckMs = 5 * 1000
/** Random bytes of the cookie: beyond guessing. */
export const dashboardTokenBytes = 32
/** Sessions of one administrator, such as browsers on several machines; one more ends the least recently used one. */
export const dashboardSessionsPerUserMax = 20
/** Expired sessions deleted per transaction. */
export const dashboardSessionsSweptMax = 1000
/** A browser may send cookies of other applications on the host; a longer header is not searched. */
export const cookieHeaderCharsMax = 16 * KiB

// Viewing as a user
/** Long enough to follow a report of a user, short enough that a forgotten one ends. */
export const viewAsMs = 30 * 60 * 1000
/** Ended views read at once. */
export const viewsAsSweptMax = 200

// Roles
export const dashboardRoleCharsMax = 32
/** A role is a row in a menu. */
export const dashboardRolesMax = 50
/** Administrators in the list of the settings, which is one page. */
export const administratorsListedMax = 500

// The page
/** Files of a build: chunks, styles and images, each up to three times. All are kept in memory. */
export const dashboardAssetsMax = 1000

// Audit
/** Entries kept: some 500 MB at half a kilobyte each. The oldest are removed, and the chain begins after them. */
export const auditEntriesMax = 1_000_000
/** Entries removed per transaction. */
export const auditPrunedMax = 5000
/** Entries appended by one transaction. */
export const auditGroupMax = 200
/** Entries that wait for theirs; beyond it requests are refused with 503. */
export const auditQueueMax = 10_000
/** Lost intents read at once. */
export const auditRecoveredMax = 200
/**
 * After how long an intent whose server does not answer for it is recorded with an unknown outcome; longer than any
 * request takes. The embedded engine has one server, which recovers all of them when it starts.
 */
export const auditIntentMs = 60 * 60 * 1000
/** Changes of one request whose content is kept. */
export const auditChangesMax = 20
/** Characters of a value, of the JSON of what was before and after, and of the path of an entry. */
export const auditValueCharsMax = 1000
export const auditTextCharsMax = 16 * KiB
export const auditTargetCharsMax = 2000
/** Nesting of values; deeper ones are cut. */
export const auditDepthMax = 8
/** Time limit of a search. */
export const auditScanMs = 10_000
/** Entries whose hashes are computed in one step of the event loop: a few milliseconds. */
export const auditVerifiedAtOnce = 500
export const auditListLimitDefault = 50
export const auditListLimitMax = 200
/** Entries per chunk of an export. */
export const auditExportedAtOnce = 500

// Saved views
export const viewNameCharsMax = 64
/** Names a screen and what it shows, such as a table with its namespace. */
export const viewAreaCharsMax = 128
export const viewBytesMax = 16 * KiB
/** Each table that an administrator has set something for is one more. */
export const viewsPerUserMax = 500

// Instances
export const instancesListedDefault = 50
export const instancesListedMax = 200

// Storage of tables
/** Pages of a table or an index that are visited: 80 MB, some tenths of a second. What is larger is estimated. */
export const storagePagesMax = 20_000
/** Rows that are counted, and rows at either end of a larger table from which the others are estimated. */
export const storageRowsMax = 10_000
/** Time limit for one table, whose disk may be slow. */
export const storageTimeoutMs = 5_000
/** How long a measurement is shown before the next one: sizes change slowly. */
export const storageMeasuredMs = 5 * 60 * 1000

// Service keys
/** How often the last use of keys is written: a busy key would write with each request. */
export const keyUsesWrittenMs = 60 * 1000

// Mails
/** A preview is shown at once; its address works a little longer than it takes to load. */
export const mailPreviewMs = 5 * 60 * 1000

// Recent requests
/** With two texts of the following length, at most 4 MB; traces have a bound of their own. */
export const recentRequestsMax = 2000
export const recentRequestCharsMax = 1000
/** Of a request that is kept, so that the buffer of all takes 1 MiB; longer ones are kept apart. */
export const recentRequestBytes = 512
export const recentRequestsListed = 100
/** The window of the counts on the first screen. */
export const overviewWindowMs = 5 * 60 * 1000

// Bulk jobs
/** Records that one transaction of a bulk job changes: some tens of milliseconds of the writer. */
export const bulkPageRecords = 500
/** Bulk jobs that run at once, on all nodes: they share the writers with the application. */
export const bulkJobsRunningMax = 2
/** Unfinished bulk jobs, one per table; each one more is refused. */
export const bulkJobsMax = 50
/** Records that one job may change: about a day of work. */
export const bulkRecordsMax = 100_000_000
/** Matches of a search whose records a job changes: each page searches again, some 40 ms of the writer. */
export const bulkFoundMax = 20_000
/** A job of more records needs a recent sign-in. */
export const bulkWithoutSignInMax = 100
/** Records that were refused, after which a job ends: the change does not fit the table. */
export const bulkFailuresMax = 1000
/** Of them, those that a job names. */
export const bulkFailuresNamed = 20
/** Claims of one cancellation: its lease may expire meanwhile, and a node claim the job. */
export const bulkCancelTriesMax = 5
/** Jobs of a table that its list contains. */
export const bulkJobsListed = 10

// Traces of requests
/** Statements, waits and functions of one trace: more than a person reads. */
export const traceSpansMax = 100
export const traceRulesMax = 20
/** Of a statement: a list of a wide table has some 1,000. */
export const traceTextCharsMax = 2000
/** Characters of all traces that a node keeps; beyond it the oldest requests lose theirs. */
export const tracesCharsMax = 8 * 1024 * KiB
/** Without another reason, one request of so many is traced: at a cost of 5 %, less than 0.1 % of the processor. */
export const traceSampleEvery = 64
/** A response that takes longer is slow: the next requests of its endpoint are traced. */
export const traceSlowMs = 100
/** Requests of an endpoint that are traced after a slow or a failed one. */
export const traceFollowedMax = 20
/** Endpoints that are followed at the same time. */
export const traceEndpointsMax = 100
/** How long every request is traced after an administrator has read the list with `watch`, which the page repeats. */
export const traceWatchMs = 10_000
/** Larger bodies are not kept, so that masking one costs little. */
export const traceBodyBytesMax = 32 * KiB
/** Characters of a masked body. */
export const traceBodyCharsMax = 4 * KiB
/** Requests of another node, and their characters, in an answer to a node that lists those of all. */
export const peerRequestsMax = 200
export const peerCharsMax = 256 * KiB

// Advice
export const adviceMax = 100
/** What is advised changes slowly; a check takes some tens of milliseconds over many tables. */
export const adviceCachedMs = 60 * 1000
/** Forms of lists that are kept without their values: a few per table. */
export const indexSamplesMax = 200
/** Missing and redundant indexes that are named, each kind. */
export const indexAdviceMax = 20
/** A scan of fewer rows takes less than a millisecond. */
export const indexRowsMin = 1000
/** Uses of an index are counted for so long before it counts as unused: what runs on a day of the week has run. */
export const adviceIndexUnusedMs = 7 * 24 * 60 * 60 * 1000
/** Statements of sampled requests: fewer of them say little, with one request in 64 sampled. */
export const indexStatementsMin = 200
/** Forms of statements whose plans are read; of each a fingerprint is kept. */
export const statementFormsMax = 5000
/** Statements and functions that are named. */
export const adviceSpansMax = 5
/** On average, in traced requests: a list by an index takes less than 5 ms. */
export const slowStatementMs = 50
export const slowFunctionMs = 250
/** Time to change a key in the programs that use it. */
export const adviceKeyExpiryMs = 14 * 24 * 60 * 60 * 1000
/** Two nightly backups were missed. */
export const adviceBackupAgeMs = 2 * 24 * 60 * 60 * 1000
/** What was verified two weeks ago says little of what is written now. */
export const adviceVerifiedAgeMs = 14 * 24 * 60 * 60 * 1000
/** The newest backups, whose verifications are read: two weeks of hourly ones. */
export const adviceBackupsListed = 400
/** Four times what the answer of a node may take. */
export const adviceClockSkewMs = 2000
/** Below it a backup or the build of an index may fill the disk. */
export const adviceDiskBytesMin = 1024 * 1024 * KiB
export const adviceDiskShareMin = 0.1
