/** Signals by which a child process reports why it terminated itself. */

/** It exceeded its memory bound. */
export const tooLargeSignal = 'SIGUSR2'
