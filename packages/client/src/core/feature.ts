/** Features: parts of the client that an application lists, so that a bundler leaves the others out. */
import type { Core } from './core.ts'

/** Returns the members that the feature adds to the client. */
export type Feature = (core: Core) => object
