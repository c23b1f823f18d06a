/** Limits of the dashboard: sessions, roles, the audit log, saved views, and the requests that it shows. */
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
