/** A preview of a large state: JSON of bounded size that keeps its structure and leaves out what does not fit. */
import type { JsonValue } from './json.ts'

/** Longer texts are cut within a preview. */
const previewTextChars = 200

/**
 * The first members and elements that fit into about `charsMax` characters, in order. Long texts end with `…`; nested
 * values that do not fit any more are empty. Reads no more of the value than it returns.
 */
export function previewJson(value: JsonValue, charsMax: number): JsonValue {
  let left = charsMax

  function preview(from: JsonValue): JsonValue {
    if (typeof from === 'string') {
      const text = from.length <= previewTextChars ? from : `${from.slice(0, previewTextChars)}…`
      left -= text.length + 2
      return text
    }
    if (typeof from !== 'object' || from === null) {
      left -= 8
      return from
    }
    left -= 2
    if (Array.isArray(from)) {
      const elements: JsonValue[] = []
      for (let at = 0; at < from.length && left > 0; at++) elements.push(preview(from[at] as JsonValue))
      return elements
    }
    const members: Record<string, JsonValue> = {}
    for (const key in from) {
      if (left <= 0) break
      left -= key.length + 4
      members[key] = preview(from[key] as JsonValue)
    }
    return members
  }

  return preview(value)
}
