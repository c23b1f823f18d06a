/** Features: parts of the client that an application lists, so that a bundler leaves the others out. */
import type { Core } from './core.ts'

export interface Feature {
  readonly name: string
  /** Returns the members that the feature adds to the client. */
  readonly install: (core: Core) => object
}
