/** Creates a number of items, such as concurrent requests or rows. */
export const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n))
