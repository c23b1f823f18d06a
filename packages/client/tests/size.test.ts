/** Sizes of the client: what an application adds by each feature, after minification and gzip, in bytes. */
import { afterAll, expect, test } from 'bun:test'
import { allBundle, type Bundle, clientBundle, moduleBundle } from './harness/bundle.ts'

interface Entry {
  readonly name: string
  /** What the entry may have, in bytes. */
  readonly budget: number
  /** Bundles with and without it; without the second, all of the first counts. */
  readonly bundles: () => Promise<readonly [Bundle, Bundle?]>
}

/** Modules that several features share. Each is an entry of its own, and counts once in everything. */
const storage = 'core/local-values.ts'
const socket = 'core/socket.ts'

const feature = (name: string, shared: readonly string[] = []): Entry['bundles'] => {
  return async () => [await clientBundle(['records', name], shared), await clientBundle(['records'], shared)]
}
/** Beside live lists, which it needs. It is not part of everything. */
const offline: Entry['bundles'] = async () => [
  await clientBundle(['records', 'live', 'persist']),
  await clientBundle(['records', 'live']),
]
const shared = (module: string): Entry['bundles'] => {
  return async () => [await clientBundle(['records'], [module]), await clientBundle(['records'])]
}

const entries: readonly Entry[] = [
  { name: 'core + records', budget: 4_000, bundles: async () => [await clientBundle(['records'])] },
  { name: 'storage (auth, files, push)', budget: 400, bundles: shared(storage) },
  { name: 'socket (live, rooms)', budget: 1_200, bundles: shared(socket) },
  { name: 'auth', budget: 2_400, bundles: feature('auth', [storage]) },
  { name: 'live', budget: 2_800, bundles: feature('live', [socket]) },
  { name: 'files', budget: 2_200, bundles: feature('files', [storage]) },
  { name: 'rooms', budget: 2_400, bundles: feature('rooms', [socket]) },
  { name: 'push', budget: 600, bundles: feature('push', [storage]) },
  { name: 'functions', budget: 400, bundles: feature('functions') },
  { name: 'offline (persist)', budget: 3_000, bundles: offline },
  { name: 'everything', budget: 15_000, bundles: async () => [await allBundle()] },
  { name: 'React', budget: 1_600, bundles: async () => [await moduleBundle('react/index.ts', ['react'])] },
  { name: 'Svelte', budget: 800, bundles: async () => [await moduleBundle('svelte/index.ts')] },
  { name: 'Vue', budget: 800, bundles: async () => [await moduleBundle('vue/index.ts', ['vue'])] },
]

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(2)} kB`
const rows: string[] = []

test.each(entries)('$name is within its budget', async ({ name, budget, bundles }) => {
  const [bundled, without] = await bundles()
  const bytes = bundled.bytes - (without?.bytes ?? 0)
  rows.push(`${name.padEnd(28)} ${kilobytes(bytes).padStart(9)} of ${kilobytes(budget)}`)
  expect(bytes, `${name} has ${kilobytes(bytes)} of ${kilobytes(budget)}`).toBeLessThanOrEqual(budget)
})

test('an application of records bundles no other feature', async () => {
  const { files } = await clientBundle(['records'])
  const folders = new Set(files.map((file) => /src\/(\w+)\//.exec(file)?.[1] ?? ''))
  expect([...folders].sort()).toEqual(['', 'core', 'records'])
  for (const module of [storage, socket]) expect(files.some((file) => file.endsWith(module))).toBe(false)
})

test.each(['auth', 'live', 'files', 'rooms', 'push', 'functions'])('%s bundles no other feature', async (name) => {
  const { files } = await clientBundle(['records', name])
  const folders = new Set(files.map((file) => /src\/(\w+)\//.exec(file)?.[1] ?? ''))
  expect([...folders].sort()).toEqual(['', 'core', 'records', name].sort())
})

afterAll(() => console.log(rows.join('\n')))
