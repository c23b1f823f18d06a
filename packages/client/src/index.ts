/** The Plinth client. Pass the features that the application uses; a bundler leaves out the others. */
export { auth } from './auth/auth.ts'
export { createClient } from './client.ts'
export { isPlinthError, PlinthError } from './core/error.ts'
export { browserStorage, memoryStorage } from './core/session-storage.ts'
export { live } from './live/live.ts'
export { records } from './records/database.ts'
export { deleteField, increment } from './records/operators.ts'
export { versionOf } from './records/versions.ts'
