/** The same thing so many times over: requests that race, rows that fill a page. */
export const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n))
