/** Items of several callers in order: the callers are served in rounds, each in the order of its items. */

export class RoundRobin<Item> {
  /** By caller; the first caller is next. */
  readonly #items = new Map<string, Set<Item>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  sizeOf(caller: string): number {
    return this.#items.get(caller)?.size ?? 0
  }

  /** Adds an item; each only once. */
  add(caller: string, item: Item): void {
    const items = this.#items.get(caller)
    if (items) items.add(item)
    else this.#items.set(caller, new Set([item]))
    this.#size += 1
  }

  delete(caller: string, item: Item): void {
    const items = this.#items.get(caller)
    if (!items?.delete(item)) return
    this.#size -= 1
    if (items.size === 0) this.#items.delete(caller)
  }

  /** Removes the first item of the next caller, who moves to the end of the round. */
  shift(): Item | undefined {
    const [next] = this.#items
    if (!next) return undefined
    const [caller, items] = next
    const [item] = items
    items.delete(item as Item)
    this.#size -= 1
    if (items.size > 0 && this.#items.size === 1) return item
    this.#items.delete(caller)
    if (items.size > 0) this.#items.set(caller, items)
    return item
  }
}
