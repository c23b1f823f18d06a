/**
 * States of a room: frozen values that a delta replaces along its paths only, so that what has not changed keeps its
 * identity. Pure.
 */

export type State = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is State => typeof value === 'object' && value !== null

/** Freezes a value and all that it contains. */
export function freeze<Value>(value: Value): Value {
  if (isObject(value) && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freeze(inner)
  }
  return value
}

/** The state with the value at a path replaced; null deletes it. */
function replace(state: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  const members: Record<string, unknown> = { ...(isObject(state) && state) }
  // A member called `__proto__` is a member like any other, also where it is set by a computed name.
  const next = replace(Object.hasOwn(members, name) ? members[name] : undefined, rest, value)
  const copy = { ...members, [name]: next }
  if (next === null && rest.length === 0) delete copy[name]
  return Object.freeze(copy)
}

/** Applies a delta: dot paths to new values, in order. */
export function applyDelta(state: State, delta: State): State {
  let next: unknown = state
  for (const [path, value] of Object.entries(delta)) next = replace(next, path.split('.'), freeze(value))
  return next as State
}

export const valueAt = (state: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), state)

/** A copy of an object that can be assigned to; `onChange` receives it when it or something in it changes. */
function draftOf(value: State, onChange: (copy: State) => void): State {
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<PropertyKey, unknown>
  const inner = new Map<unknown, State>()
  return new Proxy(copy, {
    get(_, name) {
      const member = copy[name]
      if (!isObject(member)) return member
      let draft = inner.get(member)
      if (!draft) {
        const created = draftOf(member, (next) => {
          copy[name] = next
          inner.set(next, created)
          onChange(copy)
        })
        draft = created
        inner.set(member, draft)
      }
      return draft
    },
    set(_, name, next) {
      copy[name] = next
      onChange(copy)
      return true
    },
    deleteProperty(_, name) {
      delete copy[name]
      onChange(copy)
      return true
    },
  })
}

/** The state after `change`, which may assign to its argument. What it does not change keeps its identity. */
export function produce(state: State, change: (draft: State) => void): State {
  let result = state
  const draft = draftOf(state, (copy) => {
    result = copy
  })
  change(draft)
  return freeze(result)
}
