/** The public module `plinth/functions`: declares functions of the server. */
export type {
  BeforeEvent,
  CallerContext,
  ChangeEvent,
  Context,
  EnqueueOptions,
  KeyValueStore,
  Mail,
  Operation,
  PushSender,
  VectorIndex,
} from './context.ts'
export type { Exported } from './exported.ts'
export { functionsFor, type JobContext } from './functions-for.ts'
export { HttpError } from './http-error.ts'
export type { FileRow } from './names.ts'
export { type Secret, secret } from './secret.ts'
export type { SignUpData, SignUpEvent, User, UserEvent, UserEventName } from './users.ts'
export { verifyWebhook } from './verify-webhook.ts'
