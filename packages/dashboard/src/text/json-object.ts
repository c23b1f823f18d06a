/** JSON objects that administrators type. */

/** The object that a text is, or what is wrong with it. */
export function parseObject(text: string): { readonly value: object } | { readonly problem: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value }
    return { problem: 'Must be a JSON object, such as {"plan": "pro"}.' }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
