/** Folders without retired words, each without the folders below it. Extend the list as folders are rewritten. */
export const cleanFolders: ReadonlySet<string> = new Set([
  'bench/analytics/quiet',
  'docs/decisions',
  'packages/server/bin',
  'packages/server/src/access',
  'packages/server/src/config/sections/auth',
  'packages/server/src/features/users',
  'packages/server/src/features/users/accounts',
  'packages/server/src/features/users/admin',
  'packages/server/src/features/users/email',
  'packages/server/src/features/users/mfa',
  'packages/server/src/features/users/oauth',
  'packages/server/src/features/users/passkeys',
  'packages/server/src/features/users/sessions',
  'packages/server/src/query',
  'scripts/checks',
])
