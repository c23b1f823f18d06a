/** Parsing of the command line. */
import { expect, test } from 'bun:test'
import { parseOptions } from './options.ts'

test('without options SQLite is measured at one size', () => {
  const options = parseOptions([])
  expect(options).toMatchObject({ part: 'sqlite', write: false, sizes: [100_000] })
  expect(options.chosen.map(({ name }) => name)).toContain('point-rule')
})

test('--postgres selects the scenarios that pgbench supports', () => {
  const options = parseOptions(['--postgres', '--write'])
  expect(options).toMatchObject({ part: 'postgres', write: true, sizes: [100_000] })
  expect(options.chosen.map(({ name }) => name)).toEqual([
    'point',
    'list',
    'total',
    'all',
    'search',
    'insert',
    'update',
    'batch',
  ])
})

test('sizes, scenarios, rounds and seconds override the defaults', () => {
  const args = ['--postgres', '--rows', '5k,1M', '--scenario', 'batch,point', '--rounds', '7', '--seconds', '0.5']
  const options = parseOptions(args)
  expect(options.sizes).toEqual([5000, 1_000_000])
  expect(options.chosen.map(({ name }) => name)).toEqual(['point', 'batch'])
  expect(options.plan).toMatchObject({ rounds: 7, seconds: 0.5 })
})

test('--users is a separate run', () => {
  const options = parseOptions(['--users', '--seconds', '2', '--write'])
  expect(options).toMatchObject({ part: 'users', write: true, sizes: [10_000], plan: { rounds: 3, seconds: 2 } })
  expect(parseOptions(['--users', '--quick']).plan).toMatchObject({ rounds: 2, seconds: 0.5 })
})

test('--start is a separate run, of which the number of rounds can be chosen', () => {
  expect(parseOptions(['--start'])).toMatchObject({ part: 'start', plan: { rounds: 20 } })
  expect(parseOptions(['--start', '--rounds', '5']).plan.rounds).toBe(5)
  expect(() => parseOptions(['--start', '--rows', '5k'])).toThrow('--start does not support --rows')
})

test('--peers is a separate run', () => {
  expect(parseOptions(['--peers'])).toMatchObject({ part: 'peers', sizes: [100_000], plan: { rounds: 5, seconds: 1 } })
  expect(() => parseOptions(['--peers', '--start'])).toThrow('--start and --peers cannot be combined')
})

test('--growth compares two sizes', () => {
  const { part, sizes, plan } = parseOptions(['--growth', '--rows', '5k,50k'])
  expect({ part, sizes, rounds: plan.rounds }).toEqual({ part: 'growth', sizes: [5000, 50_000], rounds: 15 })
})

test('--functions is a separate run', () => {
  expect(parseOptions(['--functions'])).toMatchObject({ part: 'functions', quick: false, plan: { rounds: 3 } })
  expect(parseOptions(['--functions', '--quick'])).toMatchObject({ quick: true, plan: { rounds: 1, seconds: 0.5 } })
  expect(() => parseOptions(['--functions', '--rows', '10k'])).toThrow('--functions does not support --rows')
})

test('--queries is a separate run', () => {
  expect(parseOptions(['--queries'])).toMatchObject({ part: 'queries', quick: false, plan: { rounds: 3, seconds: 2 } })
  expect(parseOptions(['--queries', '--quick'])).toMatchObject({ quick: true, plan: { rounds: 1 } })
})

test('--live runs all parts or selected ones', () => {
  expect(parseOptions([]).live).toBeNull()
  const { live } = parseOptions(['--live'])
  expect(live?.parts).toEqual(['fan-out', 'latency', 'slow', 'rules', 'idle', 'matching'])
  expect(live).toMatchObject({ rounds: 3, round: { seconds: 2 }, subscribers: [1, 1000, 5000] })
  const quick = parseOptions(['--live', '--quick', '--scenario', 'idle,slow', '--rounds', '2']).live
  expect(quick).toMatchObject({ parts: ['slow', 'idle'], rounds: 2, idle: { sockets: 1000 } })
})

test('--analytics is a separate run without --rows', () => {
  expect(parseOptions(['--analytics', '--write'])).toMatchObject({ part: 'analytics', write: true, quick: false })
  expect(() => parseOptions(['--analytics', '--rows', '5k'])).toThrow('--analytics does not support --rows')
})

test('--storage is a separate run', () => {
  expect(parseOptions(['--storage', '--rounds', '5'])).toMatchObject({
    part: 'storage',
    quick: false,
    plan: { rounds: 5, seconds: 1 },
  })
  expect(parseOptions(['--storage', '--quick'])).toMatchObject({ quick: true, plan: { rounds: 1 } })
})

test('--kv is a separate run without --rows', () => {
  expect(parseOptions(['--kv', '--seconds', '2'])).toMatchObject({ part: 'kv', plan: { rounds: 3, seconds: 2 } })
  expect(parseOptions(['--kv', '--quick']).plan).toMatchObject({ rounds: 2, seconds: 0.5 })
  expect(() => parseOptions(['--kv', '--rows', '1k'])).toThrow('--kv')
})

test('--sql is a separate run without --rows', () => {
  expect(parseOptions(['--sql', '--quick'])).toMatchObject({ part: 'sql', plan: { rounds: 1, seconds: 0.5 } })
  expect(() => parseOptions(['--sql', '--rows', '5k'])).toThrow('--rows')
})

test('--client is a separate run without --rows', () => {
  expect(parseOptions(['--client', '--write'])).toMatchObject({ part: 'client', write: true, plan: { rounds: 5 } })
  expect(parseOptions(['--client', '--quick'])).toMatchObject({ quick: true, plan: { rounds: 1, seconds: 0.5 } })
  expect(() => parseOptions(['--client', '--rows', '5k'])).toThrow('--client does not support --rows')
})

test('--rooms is a separate run', () => {
  expect(parseOptions([]).rooms).toBeNull()
  const options = parseOptions(['--rooms', '--rounds', '2'])
  expect(options).toMatchObject({ part: 'rooms', rooms: { rounds: 2, seconds: 1, hibernated: { rooms: 10_000 } } })
  expect(parseOptions(['--rooms', '--quick']).rooms).toMatchObject({ rounds: 1, hibernated: { rooms: 500 } })
})

test('--vector is a separate run without --rows', () => {
  expect(parseOptions(['--vector'])).toMatchObject({ part: 'vector', quick: false, plan: { rounds: 3, seconds: 2 } })
  expect(parseOptions(['--vector', '--quick'])).toMatchObject({ quick: true, plan: { rounds: 1 } })
  expect(() => parseOptions(['--vector', '--rows', '10k'])).toThrow('--rows')
})

test.each([
  [['--rows', '10'], '--rows'],
  [['--rows', 'many'], '--rows'],
  [['--rounds', '0'], '--rounds'],
  [['--seconds', 'x'], '--seconds'],
  [['--scenario', 'dance'], '"dance"'],
  [['--postgres', '--scenario', 'point-rule'], '"point-rule" with --postgres'],
  [['--postgres', '--keep', 'folder'], '--keep'],
  [['--live', '--scenario', 'point'], '"point" with --live'],
  [['--live', '--rows', '10k'], '--rows'],
  [['--live', '--postgres'], '--postgres'],
  [['--users', '--postgres'], '--postgres'],
  [['--users', '--rows', '10k'], '--rows'],
  [['--users', '--scenario', 'point'], '--scenario'],
  [['--users', '--keep', 'folder'], '--keep'],
  [['--storage', '--users'], '--users'],
  [['--storage', '--rows', '10k'], '--rows'],
  [['--rooms', '--live'], '--rooms'],
  [['--rooms', '--rows', '10k'], '--rows'],
  [['--rooms', '--scenario', 'point'], '--scenario'],
])('%p is refused', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message)
})
