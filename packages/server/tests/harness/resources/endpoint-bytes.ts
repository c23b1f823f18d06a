/** The limit of the response size of each endpoint; a new endpoint must be added here. */

/**
 * `small`: below 64 KiB, the least that `limits.responseBytes` may be. `fixed`: more, but at most so many KiB, whatever
 * is stored. `page`: ends early where it would have more than `limits.responseBytes`. `refused`: is refused where it
 * would. `item`: one stored thing with a bound of its own, always answered whole. `config`: grows with the
 * configuration alone. `file`: streamed.
 */
export type ResponseBound =
  | 'small'
  | 'page'
  | 'refused'
  | 'item'
  | 'config'
  | 'file'
  | { readonly fixedKiB: number; readonly because: string }

const all = <Name extends string>(bound: ResponseBound, ...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, bound]))

export const responseBounds: Readonly<Record<string, ResponseBound>> = {
  ...all(
    'page',
    'records.aggregate',
    'records.list',
    'records.search',
    'storage.list',
    'rooms.list',
    'rooms.inspect',
    'rooms.summaries',
  ),
  ...all(
    'page',
    'admin.listUsers',
    'analytics.events',
    'push.logs',
    'vector.perform',
    'system.logs',
    'system.nodes',
    'kv.list',
  ),
  ...all('refused', 'records.batch', 'records.transaction', 'sql.exec', 'analytics.query'),
  ...all('item', 'records.get', 'records.insert', 'records.update'),
  // One value; a list of keys is a page.
  ...all('item', 'kv.perform', 'kv.get'),
  // A result is one value of at most `functionResultBytesMax`; other responses of functions are streamed.
  ...all('item', 'functions.get', 'functions.call', 'functions.put', 'functions.patch', 'functions.delete'),
  ...all(
    'config',
    'functions.list',
    'functions.listQueues',
    'functions.listHosts',
    'functions.pauseQueue',
    'functions.resumeQueue',
  ),
  ...all('item', 'functions.enqueue', 'functions.getJob', 'functions.retryJob', 'functions.cancelJob'),
  ...all('small', 'functions.mail', 'functions.secrets.set', 'functions.secrets.remove'),
  'functions.secrets.list': { fixedKiB: 256, because: 'a thousand names of 128 characters with their times' },
  // At most 200 jobs with errors of 2,000 characters; of schedules ten runs each.
  ...all('page', 'functions.logs', 'functions.listJobs', 'functions.listSchedules'),
  ...all('config', 'system.schema', 'system.openapi', 'system.docs', 'system.metrics', 'system.config', 'system.home'),
  ...all('config', 'rules.matrix'),
  'system.advice': { fixedKiB: 512, because: '100 of them, with statements of 2,000 characters' },
  'rules.shadow': { fixedKiB: 4096, because: '20 callers with 20 records of 6 clauses of 1,000 characters and values' },
  'rules.source': { fixedKiB: 128, because: 'a rule of 20,000 characters' },
  ...all('config', 'system.stores'),
  'rules.explain': { fixedKiB: 4096, because: '500 clauses of 1,000 characters, with values of 256' },
  ...all('file', 'storage.download', 'audit.export', 'records.export'),
  ...all('small', 'audit.verify'),
  'audit.list': { fixedKiB: 12_000, because: '200 entries with 16 KiB before and after, escaped' },
  'admin.importUsers': { fixedKiB: 4096, because: 'a thousand entries of 500 characters of error, given twice' },
  'storage.signedUrls': { fixedKiB: 2048, because: 'a hundred tokens of 12 KiB and keys of 1 KiB' },
  'storage.deleteBatch': { fixedKiB: 1024, because: 'a hundred keys of 1 KiB, escaped' },
  'storage.multipartParts': { fixedKiB: 1200, because: 'ten thousand parts of 120 bytes' },
  'push.tokens': { fixedKiB: 512, because: 'ten devices with tokens and metadata of 4 KiB, escaped' },
  'users.listSessions': { fixedKiB: 512, because: 'a hundred sessions with 512 characters of user agent, escaped' },
  'admin.listAdministrators': { fixedKiB: 512, because: '500 administrators with names, escaped' },
  ...all('small', 'admin.setDashboardRole'),
  'admin.getUser': { fixedKiB: 256, because: 'metadata of 16 KiB twice, and claims' },
  'admin.createUser': { fixedKiB: 256, because: 'as admin.getUser' },
  'admin.inviteUser': { fixedKiB: 256, because: 'as admin.getUser' },
  'admin.getCredentials': { fixedKiB: 512, because: 'a hundred sessions with 512 characters of user agent, escaped' },
  ...all('small', 'admin.endSession'),
  'admin.updateUser': { fixedKiB: 256, because: 'as admin.getUser' },
  ...all('small', 'records.count', 'records.delete', 'records.batchByFilter', 'records.import'),
  ...all('small', 'subscriptions.check', 'subscriptions.broadcast'),
  ...all('small', 'storage.upload', 'storage.delete', 'storage.metadata', 'storage.updateMetadata'),
  ...all('small', 'storage.signedUrl', 'storage.signedUploadUrl', 'storage.multipartCreate', 'storage.uploadPart'),
  ...all('small', 'storage.multipartComplete', 'storage.multipartAbort', 'storage.tusOptions', 'storage.tusCreate'),
  ...all('small', 'storage.tusHead', 'storage.tusPatch', 'storage.tusTerminate'),
  ...all('small', 'rooms.check', 'rooms.summary', 'rooms.metadata', 'rooms.kick', 'rooms.hibernate'),
  'rooms.act': { fixedKiB: 65, because: 'the result of an action has at most 64 KiB' },
  ...all('small', 'push.register', 'push.unregister', 'push.subscribe', 'push.unsubscribe', 'push.send'),
  ...all('small', 'push.sendMany', 'push.sendToToken', 'push.sendToTopic', 'push.broadcast', 'push.setMetadata'),
  ...all('small', 'analytics.track', 'system.health', 'system.holdForBackup', 'system.releaseFromBackup'),
  ...all('small', 'system.listBackups', 'system.startBackup', 'system.verifyBackup'),
  ...all('small', 'system.leaseForBackup', 'system.renewBackupLease', 'system.endBackupLease'),
  ...all('small', 'admin.deleteUser', 'admin.setClaims', 'admin.revokeSessions', 'admin.removeFactors'),
  ...all('small', 'admin.listKeys', 'admin.rotateKeys', 'users.setUp', 'users.setupPage'),
  ...all('small', 'users.signUp', 'users.signIn', 'users.signInAnonymously', 'users.signOut', 'users.refresh'),
  ...all('small', 'users.me', 'users.changeProfile', 'users.changePassword', 'users.endSession', 'users.jwks'),
  ...all('small', 'users.requestMagicLink', 'users.verifyMagicLink', 'users.requestEmailCode'),
  ...all('small', 'users.verifyEmailCode', 'users.requestPasswordReset', 'users.resetPassword'),
  ...all('small', 'users.requestEmailVerification', 'users.verifyEmail', 'users.changeEmail'),
  ...all('small', 'users.verifyEmailChange', 'mfa.enrollTotp', 'mfa.verifyTotp', 'mfa.removeTotp', 'mfa.listFactors'),
  ...all('small', 'mfa.verify', 'mfa.recover', 'oauth.start', 'oauth.callback', 'oauth.callbackForm', 'oauth.link'),
  ...all('small', 'identities.list', 'identities.link', 'identities.unlink', 'passkeys.registerOptions'),
  ...all('small', 'passkeys.register', 'passkeys.authOptions', 'passkeys.authenticate', 'passkeys.list'),
  ...all('small', 'passkeys.delete'),
}
