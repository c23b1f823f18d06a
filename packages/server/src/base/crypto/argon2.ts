/**
 * argon2id, version 19, one lane, in the encoding of the reference implementation (`$argon2id$v=19$m=…,t=…,p=1$…`).
 * Computed by a native library in a third of the runtime's time, and by the runtime where the library is not installed.
 * Each verifies the hashes of the other. Runs off the event loop.
 */

export interface HashCost {
  readonly memoryKiB: number
  readonly passes: number
}

export interface Argon2 {
  /** With a random salt. */
  hash(password: string, cost: HashCost): Promise<string>
  /** Throws for a text in another encoding. */
  verify(password: string, text: string): Promise<boolean>
}

/** The library's number of argon2id: its enumeration exists in types only. */
const argon2id = 2

/** Null where the library, an optional dependency, is not installed for this system. */
export async function loadNativeArgon2(): Promise<Argon2 | null> {
  try {
    const { hash, verify } = await import('@node-rs/argon2')
    return {
      hash: (password, { memoryKiB, passes }) =>
        hash(password, { algorithm: argon2id, memoryCost: memoryKiB, timeCost: passes, parallelism: 1 }),
      verify: (password, text) => verify(text, password),
    }
  } catch {
    return null
  }
}

export const runtimeArgon2: Argon2 = {
  hash: (password, { memoryKiB, passes }) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: memoryKiB, timeCost: passes }),
  verify: (password, text) => Bun.password.verify(password, text, 'argon2id'),
}

let loaded: Promise<Argon2> | null = null

/** The faster one of this installation. */
export function argon2(): Promise<Argon2> {
  loaded ??= loadNativeArgon2().then((native) => native ?? runtimeArgon2)
  return loaded
}
