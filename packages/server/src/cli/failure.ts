/** Formats the error of a failed command: a sentence for errors that the user can fix, the stack for bugs. */

/** Errors whose message is written for users. */
const plainNames: ReadonlySet<string> = new Set([
  'ConfigError',
  'SchemaError',
  'EngineError',
  'ApiError',
  'BackupError',
  'SourceError',
])

/** The text for the terminal. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (plainNames.has(error.name)) return error.message
  const { code, syscall } = error as NodeJS.ErrnoException
  const { endpoint = 'The port', hostname = 'The address' } = error as { endpoint?: string; hostname?: string }
  if (code === 'EADDRINUSE') return `${endpoint} is in use. Stop the other process, or choose another port with --port.`
  if (code === 'EACCES' && syscall === 'listen')
    return `${endpoint} requires privileges. Choose a port above 1023 with --port.`
  // A host name that does not resolve is ENOENT or EINVAL, depending on the resolver.
  if (code === 'EADDRNOTAVAIL' || ((code === 'ENOENT' || code === 'EINVAL') && syscall === 'listen'))
    return `${hostname} is not an address of this machine. Choose another one with --host.`
  // File system errors: the message contains the file and the operation.
  if (syscall !== undefined) return error.message
  return error.stack ?? error.message
}
