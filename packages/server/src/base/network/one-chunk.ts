/** The bytes as a stream of one chunk, without the queue that other streams have between them and the socket. */
export function inOneChunk(bytes: Uint8Array): ReadableStream<Uint8Array> {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    pull(controller) {
      controller.write(bytes as Uint8Array<ArrayBuffer>)
      controller.close()
    },
  }
  // The types of the DOM do not have the runtime's direct streams.
  return new ReadableStream(source as unknown as UnderlyingDefaultSource<Uint8Array>)
}
