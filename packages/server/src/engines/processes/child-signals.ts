/** Signals by which a child process tells its parent why it ended itself. */

/** Its memory grew past its bound. */
export const tooLargeSignal = 'SIGUSR2'
