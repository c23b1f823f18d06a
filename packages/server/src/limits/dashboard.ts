/** Limits of the dashboard: sessions, roles, the audit log, saved views, bulk jobs, and the requests that it shows. */
import { KiB } from './units.ts'

// Sessions
/** A working day: administrators sign in each morning. */
export const dashboardSessionMs = 12 * 60 * 60 * 1000
/** A screen that was left alone. */
export const dashboardIdleMs = 60 * 60 * 1000
/** How often the last use of a session is written. */
export const dashboardTouchMs = 60 * 1000
/** Random bytes of the cookie: beyond guessing. */
export const dashboardTokenBytes = 32
/** Sessions of one administrator, such as browsers on several machines; one more ends the least recently used one. */
export const dashboardSessionsPerUserMax = 20
/** Expired sessions deleted per transaction. */
export const dashboardSessionsSweptMax = 1000
/** A browser may send cookies of other applications on the host; a longer header is not searched. */
export const cookieHeaderCharsMax = 16 * KiB

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
export const viewBytesMax = 16 * KiB
export const viewsPerUserMax = 200

// Recent requests
/** With two texts of the following length, at most 4 MB. */
export const recentRequestsMax = 2000
export const recentRequestCharsMax = 1000
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
/** A job of more records needs a recent sign-in. */
export const bulkWithoutSignInMax = 100
/** Records that were refused, after which a job ends: the change does not fit the table. */
export const bulkFailuresMax = 1000
/** Of them, those that a job names. */
export const bulkFailuresNamed = 20
/** Jobs of a table that its list contains. */
export const bulkJobsListed = 10
