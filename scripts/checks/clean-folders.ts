/** Folders without retired words, each without the folders below it. Extend the list as folders are rewritten. */
export const cleanFolders: ReadonlySet<string> = new Set([
  'bench/analytics/quiet',
  'docs/decisions',
  'packages/server/bin',
  'packages/server/src/access',
  'packages/server/src/query',
  'scripts/checks',
])
