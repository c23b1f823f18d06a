/** Types of the configuration section `functions`. `functions.ts` validates it at start. */

export interface FunctionsOptions {
  /** The folder of `index.ts`, relative to the configuration; default `functions`. */
  readonly folder?: string
  /** Processes that run functions, from 1 to 16; default 2. */
  readonly hosts?: number
  /** Memory at which such a process is killed, at least `'128mb'`; default `'512mb'`. Linux only. */
  readonly memory?: string | number
}
