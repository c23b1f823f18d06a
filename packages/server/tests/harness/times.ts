/** Creates a number of items, such as concurrent requests or rows. */
export const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n))

/** A sequence of numbers below a bound without a pattern, the same in every run. */
export function numbersFrom(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648
    return Math.floor((state / 2147483648) * below)
  }
}
