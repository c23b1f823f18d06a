/** Bounds of child processes. */

// Child processes
/** A process that has not reported itself by then is not going to. */
export const childStartMs = 15_000
/** How long a process may take to finish (a SQL process folds its log) before it is killed. */
export const childEndMs = 3000
