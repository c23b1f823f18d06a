import { afterEach, expect, test } from 'bun:test'
import { createLog } from '../../base/log.ts'
import { type Circuit, createCircuit } from './circuit.ts'
import type { EngineError } from './error.ts'

const opened: Circuit[] = []
afterEach(() => {
  for (const circuit of opened.splice(0)) circuit.close()
})

/** A circuit for an engine that replies according to `engine`, and a way to wait for its next probe. */
function setUp() {
  const engine: { failure: Error | null; isTroubled: boolean } = { failure: null, isTroubled: false }
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (text) => void lines.push(text) })
  const failures: EngineError[] = []
  let probes = 0
  let probed = Promise.withResolvers<void>()
  const circuit = createCircuit({
    engine: 'Engine at db:1',
    async probe() {
      probes += 1
      probed.resolve()
      probed = Promise.withResolvers<void>()
      if (engine.failure) throw engine.failure
    },
    isTroubled: () => engine.isTroubled,
    log,
  })
  circuit.onOpen((failure) => void failures.push(failure))
  opened.push(circuit)
  return {
    engine,
    circuit,
    failures,
    probes: () => probes,
    nextProbe: () => probed.promise,
    logged() {
      log.flush()
      return lines.join('')
    },
  }
}

test('a failed probe opens the circuit, which rejects work with the reason; a successful probe closes it', async () => {
  const { engine, circuit, failures, nextProbe, logged } = setUp()
  circuit.check()
  engine.failure = new Error('connection refused')
  const failure = await circuit.probe()
  expect(failure).toMatchObject({ kind: 'unavailable', message: 'Engine at db:1: connection refused' })
  expect(failures).toEqual([failure as EngineError])
  expect(() => circuit.check()).toThrow('connection refused')
  engine.failure = null
  await nextProbe()
  await new Promise(setImmediate)
  circuit.check()
  expect(await circuit.probe()).toBeNull()
  expect(logged().match(/engine\.unavailable/g)).toHaveLength(1)
  expect(logged().match(/engine\.available/g)).toHaveLength(1)
})

test('while the circuit is open, probe() returns the current failure at once and listeners are not called again', async () => {
  const { engine, circuit, failures, nextProbe } = setUp()
  engine.failure = new Error('connection refused')
  await circuit.probe()
  const first = circuit.failure
  expect(await circuit.probe()).toBe(first as EngineError)
  circuit.suspect()
  await nextProbe()
  expect(failures).toHaveLength(1)
})

test('concurrent calls of probe() share one probe', async () => {
  const { circuit, probes } = setUp()
  await Promise.all([circuit.probe(), circuit.probe(), circuit.probe()])
  expect(probes()).toBe(1)
})

test('an unfounded suspicion leaves the circuit closed', async () => {
  const { circuit, nextProbe, failures } = setUp()
  const probed = nextProbe()
  circuit.suspect()
  await probed
  expect(await circuit.probe()).toBeNull()
  expect(failures).toEqual([])
})

test('operations without a reply and a degraded state both trigger a probe', async () => {
  const { engine, circuit, nextProbe } = setUp()
  circuit.load.running = 1
  await nextProbe()
  circuit.load.running = 0
  engine.isTroubled = true
  await nextProbe()
  expect(circuit.failure).toBeNull()
})
