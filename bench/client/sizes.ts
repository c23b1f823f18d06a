/**
 * Sizes of clients: installs the newest versions of the peers from npm into a temporary folder, bundles a typical use
 * of each as our own budget test does, and prints the table of docs/benchmarks.md; `--write` updates it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allBundle, bundle, clientBundle, moduleBundle } from '../../packages/client/tests/harness/bundle.ts'

interface Peer {
  readonly package: string
  readonly what: string
  readonly program: string
  /** Packages that the application has anyway. */
  readonly external?: readonly string[]
}

const peers: readonly Peer[] = [
  { package: 'trailbase', what: 'client', program: `import { initClient } from 'trailbase'; x(initClient)` },
  {
    package: 'convex',
    what: 'React',
    program: `import { ConvexReactClient, useQuery } from 'convex/react'; x(ConvexReactClient, useQuery)`,
    external: ['react', 'react-dom'],
  },
  {
    package: '@tanstack/query-core',
    what: 'cache',
    program: `import { QueryClient, QueryObserver } from '@tanstack/query-core'; x(QueryClient, QueryObserver)`,
  },
  { package: 'pocketbase', what: 'client', program: `import PocketBase from 'pocketbase'; x(PocketBase)` },
  {
    package: 'better-auth',
    what: 'auth',
    program: `import { createAuthClient } from 'better-auth/client'; x(createAuthClient)`,
  },
  {
    package: '@supabase/supabase-js',
    what: 'client',
    program: `import { createClient } from '@supabase/supabase-js'; x(createClient)`,
  },
  {
    package: 'appwrite',
    what: 'client',
    program: `import { Client, Account, Databases, Storage } from 'appwrite'; x(Client, Account, Databases, Storage)`,
  },
  { package: 'colyseus.js', what: 'rooms', program: `import { Client } from 'colyseus.js'; x(Client)` },
  {
    package: 'firebase',
    what: 'auth',
    program: `import { initializeApp } from 'firebase/app'; import { getAuth, onAuthStateChanged } from 'firebase/auth'; x(initializeApp, getAuth, onAuthStateChanged)`,
  },
  {
    package: 'firebase',
    what: 'Firestore',
    program: `import { initializeApp } from 'firebase/app'; import { getFirestore, onSnapshot, query, collection } from 'firebase/firestore'; x(initializeApp, getFirestore, onSnapshot, query, collection)`,
  },
]

/** Packages whose newest version depends on versions that npm does not have yet. */
const pinned: Readonly<Record<string, string>> = { firebase: 'firebase@12' }

interface Row {
  readonly name: string
  readonly bytes: number
}

/** Installs the peers without running their scripts. Returns the folder. */
function installPeers(): string {
  const folder = mkdtempSync(join(tmpdir(), 'client-sizes-'))
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const names = [...new Set(peers.map((peer) => pinned[peer.package] ?? peer.package))]
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', ...names]
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm install failed: ${stderr}`)
  return folder
}

async function measurePeers(): Promise<Row[]> {
  const folder = installPeers()
  try {
    const rows: Row[] = []
    for (const { package: name, what, program, external } of peers) {
      const { version } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
      const { bytes } = await bundle(`const x = (...all) => { globalThis.used = all }; ${program}`, folder, external)
      rows.push({ name: `${name} ${version}: ${what}`, bytes })
    }
    return rows
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const ours: readonly (readonly [name: string, bytes: () => Promise<{ bytes: number }>])[] = [
  ['**Plinth**: core + records', () => clientBundle(['records'])],
  ['**Plinth**: records, auth', () => clientBundle(['records', 'auth'])],
  ['**Plinth**: records, auth, live', () => clientBundle(['records', 'auth', 'live'])],
  ['**Plinth**: everything', allBundle],
  ['**Plinth**: React hooks', () => moduleBundle('react/index.ts', ['react'])],
]

const rows: Row[] = []
for (const [name, measure] of ours) rows.push({ name, bytes: (await measure()).bytes })
rows.push(...(await measurePeers()))
rows.sort((left, right) => left.bytes - right.bytes)
const table = [
  '| import | kB |',
  '| --- | ---: |',
  ...rows.map(({ name, bytes }) => `| ${name} | ${(bytes / 1000).toFixed(1)} |`),
].join('\n')
console.log(table)

if (process.argv.includes('--write')) {
  const page = new URL('../../docs/benchmarks.md', import.meta.url)
  const text = readFileSync(page, 'utf8')
  const [before, after] = ['<!-- client sizes -->', '<!-- end of client sizes -->']
  const [start, end] = [text.indexOf(before), text.indexOf(after)]
  if (start < 0 || end < 0) throw new Error('docs/benchmarks.md has no section of client sizes')
  writeFileSync(page, `${text.slice(0, start + before.length)}\n\n${table}\n\n${text.slice(end)}`)
}
