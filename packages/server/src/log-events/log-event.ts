/** The shape of a log event's definition, and texts that several definitions share. */

/** From the least severe to the most severe. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export interface LogEventDefinition {
  readonly level: LogLevel
  /** Names of the fields in their order; a name that ends in `?` may be missing. */
  readonly fields: readonly string[]
  readonly meaning: string
  readonly action: string
}

export const none = 'Nothing.'
export const reportBug = 'Report it with the stack trace.'
