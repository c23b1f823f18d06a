/** JSON that administrators type. */

/** The value that a text is, or what is wrong with it. */
export function parseJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

/** The object that a text is, or what is wrong with it. */
export function parseObject(text: string): { readonly value: object } | { readonly problem: string } {
  const parsed = parseJson(text)
  if ('problem' in parsed) return parsed
  const { value } = parsed
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value }
  return { problem: 'Must be a JSON object, such as {"plan": "pro"}.' }
}
