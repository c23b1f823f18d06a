/**
 * Which invocations a host has begun, in memory that the server shares with it. The server offers an invocation, and
 * either the host claims it or the server withdraws it: an invocation that a blocked host has not begun moves to
 * another one and can never run twice, without a message for it.
 */
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hostInvocationsMax } from '../../limits/functions.ts'

/** Where a host claims an invocation. */
export interface Claim {
  readonly slot: number
  /** Unique among the offers of a slot, so that an outdated message claims nothing. */
  readonly mark: number
}

/** The descriptor of the memory in the host: the first after the standard ones. */
const hostDescriptor = 3
const markMax = 2 ** 31 - 1
/** The claims of the slots, followed by their steps. */
const length = 2 * hostInvocationsMax
const bytes = length * Int32Array.BYTES_PER_ELEMENT

const open = (path: string): Int32Array => {
  const { buffer, byteOffset } = Bun.mmap(path, { shared: true })
  return new Int32Array(buffer, byteOffset, length)
}

const stepOf = (slot: number): number => hostInvocationsMax + slot

/**
 * The server's side. A slot has the mark of its offer, negative once the host has claimed it, and the step that the
 * host runs: of functions that run together, the index of the one that did not return if the host is killed.
 */
export class ClaimTable {
  /** To pass to the host; closed by `release`. */
  readonly descriptor: number
  readonly #slots: Int32Array
  readonly #free = Array.from({ length: hostInvocationsMax }, (_, slot) => slot)
  readonly #offers = new Map<string, Claim>()
  #mark = 0

  /** Throws if the system has no file descriptor or no space. */
  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-host-'))
    try {
      const path = join(folder, 'claims')
      this.descriptor = openSync(path, 'w+', 0o600)
      ftruncateSync(this.descriptor, bytes)
      this.#slots = open(path)
    } finally {
      // The memory stays for as long as it is mapped.
      rmSync(folder, { recursive: true, force: true })
    }
  }

  /** Closes the descriptor, once the host has its own. */
  release(): void {
    closeSync(this.descriptor)
  }

  offer(id: string): Claim {
    const slot = this.#free.pop()
    if (slot === undefined) throw new Error('A host has more invocations than slots')
    this.#mark = (this.#mark % markMax) + 1
    const claim = { slot, mark: this.#mark }
    this.#offers.set(id, claim)
    Atomics.store(this.#slots, stepOf(slot), 0)
    Atomics.store(this.#slots, slot, claim.mark)
    return claim
  }

  hasBegun(id: string): boolean {
    const claim = this.#offers.get(id)
    return claim !== undefined && Atomics.load(this.#slots, claim.slot) !== claim.mark
  }

  /** The step of an invocation, from 0. */
  step(id: string): number {
    const claim = this.#offers.get(id)
    return claim ? Atomics.load(this.#slots, stepOf(claim.slot)) : 0
  }

  /** Withdraws an offer, which the host then cannot claim. False if the host has begun it. */
  withdraw(id: string): boolean {
    const claim = this.#offers.get(id)
    if (!claim) return false
    const { slot, mark } = claim
    if (Atomics.compareExchange(this.#slots, slot, mark, 0) !== mark) return false
    this.#remove(id, slot)
    return true
  }

  /** Frees the slot of an invocation that has ended. */
  end(id: string): void {
    const claim = this.#offers.get(id)
    if (!claim) return
    Atomics.store(this.#slots, claim.slot, 0)
    this.#remove(id, claim.slot)
  }

  #remove(id: string, slot: number): void {
    this.#offers.delete(id)
    this.#free.push(slot)
  }
}

/** The host's side. */
export interface HostClaims {
  /** Whether it may run an invocation. */
  claim(claim: Claim): boolean
  /** Notes the step of an invocation that it has claimed. */
  note(claim: Claim, step: number): void
}

export function openClaims(): HostClaims {
  const slots = open(`/dev/fd/${hostDescriptor}`)
  return {
    claim: ({ slot, mark }) => Atomics.compareExchange(slots, slot, mark, -mark) === mark,
    note: ({ slot }, step) => void Atomics.store(slots, stepOf(slot), step),
  }
}
