/** The instances that were opened last, per namespace, for as long as the page is open. */

const recentMax = 5
const byNamespace = new Map<string, readonly string[]>()

export const recentInstances = (namespace: string): readonly string[] => byNamespace.get(namespace) ?? []

export function rememberInstance(namespace: string, id: string): void {
  const others = recentInstances(namespace).filter((other) => other !== id)
  byNamespace.set(namespace, [id, ...others].slice(0, recentMax))
}
