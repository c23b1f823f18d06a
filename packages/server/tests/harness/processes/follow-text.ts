/** The output of a process while it runs. */

/** The text of a stream; `until` waits for a text after the one that it last waited for. */
export function followText(stream: ReadableStream<Uint8Array>) {
  let text = ''
  let seen = 0
  let isOver = false
  let wake = (): void => {}
  const ended = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true })
      wake()
    }
    isOver = true
    wake()
  })()
  return {
    ended,
    text: () => text,
    async until(expected: string): Promise<void> {
      while (!text.includes(expected, seen)) {
        if (isOver) throw new Error(`ended before "${expected}":\n${text}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      seen = text.indexOf(expected, seen) + expected.length
    },
  }
}
