import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from '../../validate.ts'

const parse = (game: object) =>
  parseConfig({ rooms: { game } }, { mode: 'release', rootKey: '' }).config.rooms.get('game')

test('options that are not configured have their documented defaults', () => {
  expect(parse({})).toMatchObject({
    name: 'game',
    hasPublicMetadata: false,
    maxPlayers: 100,
    maxStateBytes: 1_048_576,
    authTimeoutMs: 5000,
    actionTimeoutMs: 5000,
    reconnectGraceMs: 30_000,
    hibernateAfterMs: 300_000,
    saveIntervalMs: 60_000,
    stateTtlMs: 86_400_000,
    messageRate: 10,
    durability: 'tick',
    access: { join: undefined, action: undefined, signal: undefined, metadata: undefined },
  })
})

test('every option can be configured', () => {
  const join = () => true
  const move = () => undefined
  const onCreate = async () => undefined
  const game = parse({
    access: { join, signal: true },
    public: { metadata: true },
    maxPlayers: 2,
    maxStateSize: '10MB',
    authTimeout: '10s',
    actionTimeout: '1s',
    reconnectGrace: 0,
    hibernateAfter: '1m',
    saveInterval: '5m',
    stateTtl: '7d',
    messageRate: 60,
    durability: 'interval',
    onCreate,
    actions: { move },
    timers: { ring: move },
  })
  expect(game).toMatchObject({
    hasPublicMetadata: true,
    maxPlayers: 2,
    maxStateBytes: 10_485_760,
    authTimeoutMs: 10_000,
    actionTimeoutMs: 1000,
    reconnectGraceMs: 0,
    hibernateAfterMs: 60_000,
    saveIntervalMs: 300_000,
    stateTtlMs: 604_800_000,
    messageRate: 60,
    durability: 'interval',
  })
  expect(game?.access).toEqual({ join, signal: true, action: undefined, metadata: undefined })
  expect(game?.code.onCreate).toBe(onCreate)
  expect(game?.code.actions?.move).toBe(move)
  // Names of inherited properties are not actions.
  expect(game?.code.actions?.constructor).toBeUndefined()
})

test('a namespace without a join rule logs a warning', () => {
  expect(parseConfig({ rooms: { game: {} } }, { mode: 'release', rootKey: '' }).warnings).toEqual([
    'rooms.game: without the rule access.join every join is denied',
  ])
})

test.each<[game: unknown, option: string, message: string]>([
  [5, '', 'must be an object, not a number'],
  [{ maxPlayer: 5 }, '.maxPlayer', 'is not known here. Did you mean "maxPlayers"?'],
  [{ maxPlayers: 0 }, '.maxPlayers', 'must be at least 1'],
  [{ maxPlayers: 1001 }, '.maxPlayers', 'must be at most 1000'],
  [{ maxPlayers: 1.5 }, '.maxPlayers', 'must be a whole number, not 1.5'],
  [{ maxStateSize: '11mb' }, '.maxStateSize', 'must be at most 10mb'],
  [{ maxStateSize: 'big' }, '.maxStateSize', 'must be a size such as "1mb", or a number of bytes'],
  [{ maxStateSize: 0 }, '.maxStateSize', 'must be at least 1'],
  [{ authTimeout: 5 }, '.authTimeout', 'must be text, not a number'],
  [{ authTimeout: '2m' }, '.authTimeout', 'must be at most 60 seconds'],
  [{ actionTimeout: '0s' }, '.actionTimeout', 'must be a duration such as "30s", "15m", "12h" or "7d"'],
  [{ reconnectGrace: 5 }, '.reconnectGrace', 'must be a duration such as "30s", or 0'],
  [{ messageRate: 0 }, '.messageRate', 'must be at least 1'],
  [{ durability: 'never' }, '.durability', 'must be one of tick, interval.'],
  [{ access: { join: 'all' } }, '.access.join', 'must be true, false or a function'],
  [{ access: { jion: true } }, '.access.jion', 'is not known here. Did you mean "join"?'],
  [{ public: { metadata: 'yes' } }, '.public.metadata', 'must be true or false, not a string'],
  [{ onJoin: true }, '.onJoin', 'must be a function'],
  [{ actions: { move: 'left' } }, '.actions.move', 'must be a function'],
  [{ actions: [] }, '.actions', 'must be an object, not a list'],
])('%j', (game, option, message) => {
  expect(findMistakes({ rooms: { game } }, '')).toEqual([`rooms.game${option}: ${message}`])
})

test.each(['_game', 'constructor', 'a b', '1st', 'x'.repeat(49)])(
  '%j is rejected as the name of a namespace',
  (name) => {
    expect(findMistakes({ rooms: { [name]: {} } }, '')).toHaveLength(1)
  },
)
