/** Bounds of child processes. */

// Child processes
/** A child process that has not reported readiness by then is considered failed. */
export const childStartMs = 15_000
/** How long a child process may take to exit (a SQL process checkpoints its log) before it is killed. */
export const childEndMs = 3000
