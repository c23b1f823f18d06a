/** Where something is in the application's code: read from stack traces. Used in the server and in function hosts. */

export interface SourceLocation {
  /** Absolute path. */
  readonly file: string
  /** From 1. */
  readonly line: number
}

const framePattern = /\(?(?:file:\/\/)?((?:\/|[A-Za-z]:[\\/])[^()]*?):(\d+)(?::\d+)?\)?$/

/** Modules of the runtime, of packages and of this program are not the application's. */
const ownFolder = new URL('../../..', import.meta.url).pathname
/** In this repository the client is a folder of the workspace, not a package. */
const clientFolder = new URL('.', import.meta.resolve('plinth-client')).pathname
const isOwn = (file: string): boolean =>
  file.startsWith(ownFolder) || file.startsWith(clientFolder) || /[\\/]node_modules[\\/]/.test(file)

/** The topmost frame of a stack trace in the application's code; null if there is none. */
export function findLocation(stack: string | undefined): SourceLocation | null {
  for (const text of stack?.split('\n') ?? []) {
    const [, file = '', line] = framePattern.exec(text.trim()) ?? []
    if (file !== '' && !isOwn(file)) return { file, line: Number(line) }
  }
  return null
}

/** The location in the application's code that called into this module. */
export const callerLocation = (): SourceLocation | null => findLocation(new Error('location').stack)
