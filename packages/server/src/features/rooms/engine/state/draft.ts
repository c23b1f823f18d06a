/**
 * A copy-on-write draft of a state for one handler: assignments are kept in overlays until `apply`, so that a rollback
 * is free. The cost depends on what the handler reads and writes, not on the size of the state: nothing is copied.
 *
 * Each object that is read gets a `Site` with the values assigned to its keys (`overlay`). An assigned object remains
 * the handler's until `prepare` copies it; changes that the handler makes to it later do not reach the state.
 */
import type { RoomState } from '../../../../config/sections/rooms/room-code.ts'
import { roomArrayGapMax } from '../../../../limits/rooms.ts'
import { invalidState } from '../handlers/action-error.ts'
import type { ChangedPaths } from './changed-paths.ts'
import {
  copyJson,
  isForbiddenKey,
  type JsonArray,
  type JsonRecord,
  type JsonValue,
  jsonBytes,
  memberBytes,
  memberCount,
  setMember,
} from './json.ts'

/** What all drafts of one handler share. */
export interface DraftOwner {
  /** False once the handler has ended: every use of a draft then throws. */
  isLive: boolean
}

const deleted = Symbol('deleted')
type Assigned = unknown | typeof deleted

interface Site {
  readonly draft: Draft
  readonly base: JsonRecord | JsonArray
  readonly parent: Site | null
  readonly depth: number
  readonly proxy: RoomState
  /** Assigned values by key; copies of them after `prepare`. */
  overlay: Map<string, Assigned> | null
  /** Sites of the values of `base`. */
  children: Map<string, Site> | null
  /** Whether this object or one below it may have changed. */
  isDirty: boolean
  /** Arrays: the current length, and the length of the prefix of `base` that was never truncated. */
  length: number
  kept: number
}

/** The target of a proxy is its site, wrapped in an array where the proxy must be an array. */
type Target = Site | [Site]
const siteOf = (target: Target): Site => (Array.isArray(target) ? target[0] : target)

function checkLive(site: Site): void {
  if (!site.draft.owner.isLive) throw new TypeError('The state cannot be used after its handler has ended')
}

const indexPattern = /^(?:0|[1-9]\d{0,9})$/
const isIndex = (key: string): boolean => indexPattern.test(key)

const ownsKey = (site: Site, key: string): boolean =>
  Array.isArray(site.base) ? isIndex(key) && Number(key) < site.kept : Object.hasOwn(site.base, key)

const baseValue = (site: Site, key: string): JsonValue => (site.base as JsonRecord)[key] as JsonValue

function has(site: Site, key: string): boolean {
  const assigned = site.overlay?.get(key)
  return assigned === undefined ? ownsKey(site, key) : assigned !== deleted
}

function read(site: Site, key: string): unknown {
  const assigned = site.overlay?.get(key)
  if (assigned !== undefined) return assigned === deleted ? undefined : assigned
  if (!ownsKey(site, key)) return undefined
  const value = baseValue(site, key)
  return typeof value === 'object' && value !== null ? childOf(site, key, value).proxy : value
}

function childOf(site: Site, key: string, value: JsonRecord | JsonArray): Site {
  site.children ??= new Map()
  const known = site.children.get(key)
  if (known) return known
  const child = createSite(site.draft, value, site)
  site.children.set(key, child)
  return child
}

function assign(site: Site, key: string, value: Assigned): void {
  site.overlay ??= new Map()
  site.overlay.set(key, value)
  markDirty(site)
}

function markDirty(site: Site): void {
  for (let at: Site | null = site; at && !at.isDirty; at = at.parent) at.isDirty = true
}

function write(site: Site, key: string, value: unknown): void {
  if (isForbiddenKey(key)) throw invalidState(`A state must not contain the key ${key}`)
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint')
    throw invalidState(`A state must not contain a ${typeof value}`)
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalidState(`A state must not contain ${value}`)
  // A value assigned back to its own key undoes other assignments to that key.
  if (typeof value === 'object' && site.children?.get(key)?.proxy === value && ownsKey(site, key))
    site.overlay?.delete(key)
  else if (Array.isArray(site.base)) writeElement(site, key, value)
  else if (value === null || value === undefined) remove(site, key)
  else assign(site, key, value)
}

function writeElement(site: Site, key: string, value: unknown): void {
  if (key === 'length') {
    resize(site, value as number)
    return
  }
  if (!isIndex(key)) throw invalidState('An array in a state must have no other properties than its elements')
  const length = Number(key) + 1
  if (length > site.length) resize(site, length)
  assign(site, key, value === undefined ? deleted : value)
}

function resize(site: Site, length: number): void {
  if (!Number.isInteger(length) || length < 0) throw new RangeError('Invalid array length')
  if (length > site.length + roomArrayGapMax)
    throw invalidState(`An array in a state can grow by at most ${roomArrayGapMax} elements beyond its end`)
  for (let at = length; at < site.length; at++) site.overlay?.delete(String(at))
  site.kept = Math.min(site.kept, length)
  // Elements without a value become null, as in JSON.
  for (let at = site.length; at < length; at++) assign(site, String(at), deleted)
  if (length !== site.length) markDirty(site)
  site.length = length
}

function remove(site: Site, key: string): void {
  if (ownsKey(site, key)) assign(site, key, deleted)
  else site.overlay?.delete(key)
}

function keysOf(site: Site): string[] {
  if (Array.isArray(site.base)) {
    const keys: string[] = []
    for (let at = 0; at < site.length; at++) if (has(site, String(at))) keys.push(String(at))
    keys.push('length')
    return keys
  }
  const keys = Object.keys(site.base)
  if (!site.overlay) return keys
  const present = keys.filter((key) => site.overlay?.get(key) !== deleted)
  for (const key of site.overlay.keys()) if (!Object.hasOwn(site.base, key)) present.push(key)
  return present
}

const rejectChange = (): never => {
  throw invalidState('A state can be changed only by assignment')
}

/** Objects inherit nothing (`state[name]` of an unknown name is undefined); arrays have the methods of `Array`. */
function inherited(site: Site, key: string | symbol): unknown {
  if (!Array.isArray(site.base) || (typeof key === 'string' && isForbiddenKey(key))) return undefined
  return Reflect.get(Array.prototype, key)
}

const traps: ProxyHandler<Target> = {
  get(target, key) {
    const site = siteOf(target)
    checkLive(site)
    if (typeof key === 'symbol') return inherited(site, key)
    if (Array.isArray(site.base) && key === 'length') return site.length
    const value = read(site, key)
    return value === undefined ? inherited(site, key) : value
  },
  set(target, key, value) {
    const site = siteOf(target)
    checkLive(site)
    if (typeof key === 'symbol') return rejectChange()
    write(site, key, value)
    return true
  },
  deleteProperty(target, key) {
    const site = siteOf(target)
    checkLive(site)
    if (typeof key === 'symbol') return true
    if (Array.isArray(site.base)) {
      if (isIndex(key) && Number(key) < site.length) assign(site, key, deleted)
    } else remove(site, key)
    return true
  },
  has(target, key) {
    const site = siteOf(target)
    checkLive(site)
    if (typeof key === 'symbol') return inherited(site, key) !== undefined
    return has(site, key) || inherited(site, key) !== undefined
  },
  ownKeys(target) {
    const site = siteOf(target)
    checkLive(site)
    return keysOf(site)
  },
  getOwnPropertyDescriptor(target, key) {
    const site = siteOf(target)
    checkLive(site)
    if (typeof key === 'symbol') return undefined
    if (Array.isArray(site.base) && key === 'length')
      return { value: site.length, writable: true, enumerable: false, configurable: false }
    if (!has(site, key)) return undefined
    // A getter: most callers test only whether the key exists.
    return { get: () => read(site, key), enumerable: true, configurable: true }
  },
  getPrototypeOf: (target) => (Array.isArray(target) ? Array.prototype : null),
  defineProperty: rejectChange,
  setPrototypeOf: rejectChange,
  preventExtensions: rejectChange,
}

function createSite(draft: Draft, base: JsonRecord | JsonArray, parent: Site | null): Site {
  const length = Array.isArray(base) ? base.length : 0
  const site = {
    draft,
    base,
    parent,
    depth: parent ? parent.depth + 1 : 0,
    overlay: null,
    children: null,
    isDirty: false,
    length,
    kept: length,
  } as unknown as Site & { proxy: RoomState }
  site.proxy = new Proxy<Target>(Array.isArray(base) ? [site] : site, traps) as RoomState
  return site
}

/** Copies the values assigned to an object and drops those that change nothing; returns the change in bytes. */
function prepareMembers(site: Site, base: JsonRecord, overlay: Map<string, Assigned>): number {
  let change = 0
  let growth = 0
  for (const [key, assigned] of overlay) {
    const before = Object.hasOwn(base, key) ? base[key] : undefined
    if (before === assigned || (before === undefined && assigned === deleted)) {
      overlay.delete(key)
      continue
    }
    if (before !== undefined) {
      change -= memberBytes(key) + jsonBytes(before)
      growth -= 1
    }
    if (assigned === deleted) continue
    const { value, bytes } = copyJson(assigned, site.depth + 1, site.draft.bytesMax)
    overlay.set(key, value)
    change += memberBytes(key) + bytes
    growth += 1
  }
  if (growth === 0) return change
  // The last member has no comma.
  const members = memberCount(base)
  return change + Math.min(1, members) - Math.min(1, members + growth)
}

function prepareElements(site: Site, base: JsonArray): number {
  let change = Math.max(0, site.length - 1) - Math.max(0, base.length - 1)
  for (let at = site.kept; at < base.length; at++) change -= jsonBytes(base[at] as JsonValue)
  if (site.overlay)
    for (const [key, assigned] of site.overlay) {
      const at = Number(key)
      if (at < site.kept) change -= jsonBytes(base[at] as JsonValue)
      const { value, bytes } = copyJson(assigned === deleted ? null : assigned, site.depth + 1, site.draft.bytesMax)
      site.overlay.set(key, value)
      change += bytes
    }
  return change
}

function prepare(site: Site): number {
  const { base, overlay } = site
  let change = 0
  let isDirty = false
  if (Array.isArray(base)) {
    change += prepareElements(site, base)
    isDirty = (overlay?.size ?? 0) > 0 || site.kept !== base.length || site.length !== base.length
  } else if (overlay) {
    change += prepareMembers(site, base, overlay)
    isDirty = overlay.size > 0
  }
  if (site.children)
    for (const [key, child] of site.children) {
      if (!child.isDirty || overlay?.has(key) || !ownsKey(site, key)) child.isDirty = false
      else change += prepare(child)
      isDirty ||= child.isDirty
    }
  site.isDirty = isDirty
  return change
}

function apply(site: Site, changes: ChangedPaths): void {
  const { base, overlay } = site
  if (Array.isArray(base)) {
    changes.markAll()
    base.length = site.kept
    if (overlay) for (const [key, value] of overlay) base[Number(key)] = value as JsonValue
  } else if (overlay)
    for (const [key, value] of overlay) {
      changes.markMember(key)
      setMember(base, key, value === deleted ? undefined : (value as JsonValue))
    }
  if (site.children) for (const [key, child] of site.children) if (child.isDirty) apply(child, changes.below(key))
}

export class Draft {
  private readonly root: Site

  /** A draft of `base`, which stays unchanged until `apply`. `bytesMax` limits each assigned value. */
  constructor(
    readonly owner: DraftOwner,
    base: JsonRecord,
    readonly bytesMax: number,
  ) {
    this.root = createSite(this, base, null)
  }

  /** The object that the handler reads and changes. */
  get state(): RoomState {
    return this.root.proxy
  }

  /** Replaces the state: assigns each key of `value` and deletes all other keys. */
  replace(value: unknown): void {
    const { proxy } = this.root
    if (value === proxy) return
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidState('A state must be an object')
    for (const key of Object.keys(proxy)) if (!Object.hasOwn(value, key)) delete proxy[key]
    for (const [key, member] of Object.entries(value)) proxy[key] = member
  }

  /** Whether anything may have been assigned. */
  get isDirty(): boolean {
    return this.root.isDirty
  }

  /** After `prepare`: the top-level keys whose values changed. */
  *changedKeys(): Generator<string> {
    const { overlay, children } = this.root
    if (overlay) yield* overlay.keys()
    if (children) for (const [key, child] of children) if (child.isDirty) yield key
  }

  /** Copies and validates the assigned values; returns the change in bytes. Nothing may be assigned afterwards. */
  prepare(): number {
    return prepare(this.root)
  }

  /** Applies the assignments to the state and marks the changed paths; must not throw. */
  apply(changes: ChangedPaths): void {
    if (this.root.isDirty) apply(this.root, changes)
  }
}
