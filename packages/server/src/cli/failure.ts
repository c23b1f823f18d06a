/**
 * How a command that failed says why: a sentence for what its user can mend, everything there is for what is a mistake
 * of ours.
 */

/** Errors whose message was written for the person at the terminal. */
const plainNames: ReadonlySet<string> = new Set([
  'ConfigError',
  'SchemaError',
  'EngineError',
  'ApiError',
  'BackupError',
])

/** The text for the terminal. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (plainNames.has(error.name)) return error.message
  const { code, syscall } = error as NodeJS.ErrnoException
  const { endpoint = 'The port', hostname = 'The address' } = error as { endpoint?: string; hostname?: string }
  if (code === 'EADDRINUSE') return `${endpoint} is in use. Stop what listens there, or take another port with --port.`
  if (code === 'EACCES' && syscall === 'listen')
    return `${endpoint} needs more rights. Take a port above 1023 with --port.`
  // A name that does not resolve is ENOENT.
  if (code === 'EADDRNOTAVAIL' || (code === 'ENOENT' && syscall === 'listen'))
    return `${hostname} is no address of this machine. Take another one with --host.`
  // Disks and permissions: the message names the file and what was tried.
  if (syscall !== undefined) return error.message
  return error.stack ?? error.message
}
